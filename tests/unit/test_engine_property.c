/* Random operations and clock steps on the table against a plain restatement of the rules in arrays. */
#include <stdio.h>

#include "engine/table.h"
#include "support/operations.h"
#include "support/seed.h"
#include "support/unit.h"

enum { RESOURCES = 6, CALLERS = 3, STEPS = 20000, SEEDS = 4 };

static const char *const resources[RESOURCES] = {"r0", "r1", "r2", "r3", "r4", "r5"};
static const char *const callers[CALLERS] = {"a", "b", "c"};

struct model_row {
    bool exists;
    int64_t epoch;
    int holder; /* -1 = free */
    int64_t until_ns;
    int64_t lease_revision;
    int64_t value_revision;
};

struct model {
    struct model_row rows[RESOURCES];
    int64_t floor;
};

struct choice {
    enum aster_operation_kind kind;
    int resource;
    int caller;
    int64_t epoch;
    int64_t revision; /* of the lease or of the value, as the kind wants */
    int64_t ttl_ms;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int pick(uint64_t *seed, int count)
{
    return (int)(next_random(seed) % (uint64_t)count);
}

/* Mostly what the row wants, sometimes off by one, so that both grants and every refusal come up. */
static struct choice choose(const struct model *model, uint64_t *seed)
{
    struct choice choice = {.kind = (enum aster_operation_kind)(1 + pick(seed, 7)), .resource = pick(seed, RESOURCES)};
    const struct model_row *row = &model->rows[choice.resource];
    choice.caller = row->holder >= 0 && pick(seed, 3) > 0 ? row->holder : pick(seed, CALLERS);
    choice.epoch = row->epoch + (pick(seed, 4) == 0 ? pick(seed, 3) - 1 : 0);
    choice.revision = choice.kind == ASTER_OP_EXPIRE ? row->lease_revision : row->value_revision;
    choice.revision += pick(seed, 4) == 0 ? 1 : 0;
    choice.epoch = choice.epoch < 0 ? 0 : choice.epoch;
    choice.ttl_ms = 100 + pick(seed, 400);
    return choice;
}

static enum aster_reason judge_fence(const struct model_row *row, const struct choice *choice)
{
    if (choice->epoch != row->epoch) {
        return choice->epoch < row->epoch ? ASTER_REASON_STALE_EPOCH : ASTER_REASON_FUTURE_EPOCH;
    }
    if (row->holder < 0) {
        return ASTER_REASON_NOT_HELD;
    }
    return row->holder == choice->caller ? ASTER_REASON_NONE : ASTER_REASON_NOT_HOLDER;
}

static enum aster_reason judge(const struct model_row *row, const struct choice *choice, int64_t now_ns)
{
    bool held = row->holder >= 0;
    bool expired = held && now_ns >= row->until_ns;
    bool same_epoch = choice->epoch == row->epoch;
    enum aster_reason fenced = judge_fence(row, choice);
    switch (choice->kind) {
    case ASTER_OP_ACQUIRE:
        return held && !expired ? ASTER_REASON_HELD_BY_OTHER : ASTER_REASON_NONE;
    case ASTER_OP_RENEW:
        return !held                           ? ASTER_REASON_NOT_HELD
               : !same_epoch                   ? ASTER_REASON_EPOCH_MISMATCH
               : row->holder != choice->caller ? ASTER_REASON_NOT_HOLDER
               : expired                       ? ASTER_REASON_EXPIRED
                                               : ASTER_REASON_NONE;
    case ASTER_OP_RELEASE:
        return !same_epoch                              ? ASTER_REASON_EPOCH_MISMATCH
               : !held || row->holder != choice->caller ? ASTER_REASON_NOT_HOLDER
                                                        : ASTER_REASON_NONE;
    case ASTER_OP_EXPIRE:
        return !held                                                    ? ASTER_REASON_NOT_HELD
               : !same_epoch || choice->revision != row->lease_revision ? ASTER_REASON_EPOCH_MISMATCH
                                                                        : ASTER_REASON_NONE;
    case ASTER_OP_PUT:
        return fenced != ASTER_REASON_NONE               ? fenced
               : choice->revision != row->value_revision ? ASTER_REASON_REVISION_MISMATCH
                                                         : ASTER_REASON_NONE;
    case ASTER_OP_FORGET:
        return held ? ASTER_REASON_HELD_BY_OTHER : ASTER_REASON_NONE;
    default:
        return ASTER_REASON_NONE;
    }
}

static void forget(struct model *model, struct model_row *row)
{
    model->floor = row->epoch > model->floor ? row->epoch : model->floor;
    *row = (struct model_row){.holder = -1};
    for (int i = 0; i < RESOURCES; i++) {
        if (!model->rows[i].exists) {
            model->rows[i].epoch = model->floor;
        }
    }
}

static void carry_out(struct model *model, const struct choice *choice, int64_t now_ns)
{
    struct model_row *row = &model->rows[choice->resource];
    row->exists = true;
    switch (choice->kind) {
    case ASTER_OP_ACQUIRE:
        row->epoch++;
        row->holder = choice->caller;
        row->until_ns = now_ns + choice->ttl_ms * 1000000;
        break;
    case ASTER_OP_RENEW:
        row->lease_revision++;
        break; /* the caller knows the ttl of the lease */
    case ASTER_OP_PUT:
        row->value_revision++;
        break;
    case ASTER_OP_FORGET:
        forget(model, row);
        break;
    default:
        row->epoch++;
        row->holder = -1;
        break;
    }
}

static struct aster_operation operation_for(const struct choice *choice, uint64_t id)
{
    struct aster_operation operation = operation_of(choice->kind, callers[choice->caller], choice->epoch);
    operation.resource = aster_text(resources[choice->resource]);
    operation.ttl_ms = choice->kind == ASTER_OP_ACQUIRE ? choice->ttl_ms : 0;
    operation.lease_revision = choice->kind == ASTER_OP_EXPIRE ? choice->revision : 0;
    operation.value_revision = choice->kind == ASTER_OP_PUT ? choice->revision : 0;
    return with_id(operation, id);
}

static void compare(const struct aster_table_result *result, const struct model_row *row, enum aster_reason reason)
{
    const struct aster_decision *decision = &result->effect.decision;
    assert_string_equal(aster_reason_name(decision->reason), aster_reason_name(reason));
    assert_int_equal(decision->outcome, reason == ASTER_REASON_NONE ? ASTER_GRANTED : ASTER_DENIED);
    assert_int_equal(decision->snapshot.held, row->holder >= 0);
    if (!result->effect.removed) {
        assert_int_equal(decision->snapshot.epoch, row->epoch);
    }
    if (row->holder >= 0) {
        assert_true(aster_bytes_equal(decision->snapshot.holder, aster_text(callers[row->holder])));
    }
}

/* A lost reply: the same request again, perhaps after the lease has run out, gets the same decision and changes
 * nothing. */
static void repeat(struct aster_table *table, const struct aster_operation *operation, int64_t now_ns,
                   const struct aster_decision *first)
{
    uint64_t before = aster_table_state_hash(table);
    int64_t epoch = first->epoch;
    bool takeover = first->takeover;
    struct aster_table_result again;
    assert_int_equal(aster_table_apply(table, operation, now_ns, &again, NULL), ASTER_OK);
    assert_true(again.effect.decision.replayed);
    assert_int_equal(again.effect.decision.outcome, ASTER_GRANTED);
    assert_int_equal(again.effect.decision.epoch, epoch);
    assert_int_equal(again.effect.decision.takeover, takeover);
    assert_true(aster_table_state_hash(table) == before);
}

static uint64_t run(uint64_t seed)
{
    struct aster_table_options options = {{seed, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    struct model model = {0};
    int64_t now_ns = 0;
    int64_t ttl_ms[RESOURCES] = {0};
    assert_int_equal(aster_table_create(&options, &table, NULL), ASTER_OK);
    for (int i = 0; i < RESOURCES; i++) {
        model.rows[i].holder = -1;
    }
    for (uint64_t step = 1; step <= STEPS; step++) {
        now_ns += pick(&seed, 60) * INT64_C(1000000);
        struct choice choice = choose(&model, &seed);
        struct model_row *row = &model.rows[choice.resource];
        enum aster_reason reason = judge(row, &choice, now_ns);
        int64_t epoch_before = row->epoch;
        struct aster_operation operation = operation_for(&choice, step);
        struct aster_table_result result;
        assert_int_equal(aster_table_apply(table, &operation, now_ns, &result, NULL), ASTER_OK);
        if (reason == ASTER_REASON_NONE) {
            carry_out(&model, &choice, now_ns);
            if (choice.kind == ASTER_OP_ACQUIRE) {
                ttl_ms[choice.resource] = choice.ttl_ms;
            } else if (choice.kind == ASTER_OP_RENEW) {
                row->until_ns = now_ns + ttl_ms[choice.resource] * 1000000;
            }
        }
        compare(&result, row, reason);
        bool is_request = choice.kind != ASTER_OP_EXPIRE && choice.kind != ASTER_OP_FORGET;
        if (reason == ASTER_REASON_NONE && is_request && pick(&seed, 4) == 0) {
            repeat(table, &operation, now_ns + pick(&seed, 2) * INT64_C(1000000000), &result.effect.decision);
        }
        assert_true(row->epoch >= epoch_before && row->epoch >= 0);
        struct aster_fence fence = {operation.resource, choice.epoch, operation.caller};
        assert_int_equal(aster_table_fence(table, &fence, operation.caller).reason, judge_fence(row, &choice));
        assert_int_equal(aster_table_floor(table), model.floor);
        assert_null(aster_table_check(table));
    }
    uint64_t hash = aster_table_state_hash(table);
    aster_table_destroy(table);
    return hash;
}

static void the_table_agrees_with_the_plain_model_and_is_deterministic(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t start = test_seed(seed * UINT64_C(0x9e3779b97f4a7c15));
        assert_true(run(start) == run(start));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_agrees_with_the_plain_model_and_is_deterministic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
