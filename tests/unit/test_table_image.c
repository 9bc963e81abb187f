/* Random changes, some kept and some taken back: the table is what it was before those, deadlines included. */
#include "engine/table.h"
#include "support/operations.h"
#include "support/seed.h"
#include "support/unit.h"

enum { RESOURCES = 5, CHANGES_MAX = 12, ROUNDS = 3000 };

static const char *const resources[RESOURCES] = {"r0", "r1", "r2", "r3", "r4"};
static const char *const callers[] = {"a", "b"};
static const char values[][4] = {"", "one", "two"};

struct done {
    struct aster_bytes resource;
    struct aster_table_image image;
};

static unsigned pick(uint64_t *seed, unsigned count)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (unsigned)(*seed % count);
}

static struct aster_snapshot look(struct aster_table *table, const char *resource, int64_t now_ns)
{
    struct aster_table_result result;
    struct aster_operation operation = operation_of(ASTER_OP_INSPECT, "a", 0);
    operation.resource = aster_text(resource);
    assert_int_equal(aster_table_apply(table, &operation, now_ns, &result, NULL), ASTER_OK);
    return result.effect.decision.snapshot;
}

/* One that mostly succeeds. */
static struct aster_operation choose(struct aster_table *table, int64_t now_ns, uint64_t *seed)
{
    static const enum aster_operation_kind kinds[] = {ASTER_OP_ACQUIRE, ASTER_OP_RENEW,  ASTER_OP_RELEASE,
                                                      ASTER_OP_PUT,     ASTER_OP_REVOKE, ASTER_OP_FORGET};
    const char *resource = resources[pick(seed, RESOURCES)];
    const struct aster_snapshot row = look(table, resource, now_ns);
    const char *caller = callers[pick(seed, 2)];
    if (row.held && pick(seed, 4) > 0) {
        caller = *(const char *)row.holder.data == 'a' ? "a" : "b";
    }
    struct aster_operation operation = operation_of(kinds[pick(seed, 6)], caller, row.epoch);
    operation.resource = aster_text(resource);
    operation.value_revision = operation.kind == ASTER_OP_PUT ? row.value_revision : 0;
    operation.value = operation.kind == ASTER_OP_PUT ? aster_text(values[pick(seed, 3)]) : operation.value;
    return with_id(operation, 1 + pick(seed, 1000000));
}

static size_t change_some(struct aster_table *table, int64_t *now_ns, uint64_t *seed, struct done *done, bool renew)
{
    size_t count = 0;
    for (unsigned left = pick(seed, CHANGES_MAX); left > 0; left--) {
        *now_ns += pick(seed, 2000) * INT64_C(1000000);
        const struct aster_operation operation = choose(table, *now_ns, seed);
        if (operation.kind == ASTER_OP_RENEW && !renew) {
            continue;
        }
        struct aster_table_result result;
        done[count].resource = operation.resource;
        aster_table_apply_imaged(table, &operation, *now_ns, &result, &done[count].image, NULL);
        assert_null(aster_table_check(table));
        count += done[count].image.kind != ASTER_IMAGE_NONE;
    }
    return count;
}

static void changes_that_are_taken_back_leave_the_table_as_it_was(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261201);
    struct aster_table_options options = {{seed, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    struct done done[CHANGES_MAX];
    int64_t now_ns = 0;
    size_t undone = 0;
    assert_int_equal(aster_table_create(&options, &table, NULL), ASTER_OK);
    for (int round = 0; round < ROUNDS; round++) {
        size_t kept = change_some(table, &now_ns, &seed, done, true);
        while (kept > 0) {
            aster_table_image_drop(table, &done[--kept].image);
        }
        const uint64_t before = aster_table_state_hash(table);
        const struct aster_table_usage usage = aster_table_usage_get(table);
        const int64_t floor = aster_table_floor(table);
        int64_t deadlines[RESOURCES];
        for (int i = 0; i < RESOURCES; i++) {
            deadlines[i] = aster_table_deadline(table, aster_text(resources[i]));
        }
        size_t count = change_some(table, &now_ns, &seed, done, false);
        for (undone += count; count > 0; count--) {
            aster_table_restore(table, done[count - 1].resource, &done[count - 1].image);
        }
        aster_table_reset_floor(table, floor);
        assert_null(aster_table_check(table));
        assert_true(aster_table_state_hash(table) == before);
        assert_int_equal(aster_table_usage_get(table).rows, usage.rows);
        assert_int_equal(aster_table_usage_get(table).held, usage.held);
        for (int i = 0; i < RESOURCES; i++) {
            assert_int_equal(aster_table_deadline(table, aster_text(resources[i])), deadlines[i]);
        }
    }
    assert_true(undone > ROUNDS); /* it did what it is for */
    aster_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_that_are_taken_back_leave_the_table_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
