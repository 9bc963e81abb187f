#include <stdio.h>

#include "engine/table.h"
#include "support/operations.h"
#include "support/unit.h"

#define MS INT64_C(1000000)
#define TTL_NS (10000 * MS)

static struct aster_table *table_with(size_t resources_max)
{
    struct aster_table_options options = {{1, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    options.limits.resources_max = resources_max;
    assert_int_equal(aster_table_create(&options, &table, NULL), ASTER_OK);
    return table;
}

static struct aster_decision apply(struct aster_table *table, struct aster_bytes resource,
                                   struct aster_operation operation, int64_t now_ns)
{
    struct aster_table_result result;
    struct aster_error error = ASTER_ERROR_INIT;
    operation.resource = resource;
    if (aster_table_apply(table, &operation, now_ns, &result, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_null(aster_table_check(table));
    return result.effect.decision;
}

static int64_t acquire(struct aster_table *table, const char *resource, const char *candidate, int64_t now_ns)
{
    struct aster_decision decision =
        apply(table, aster_text(resource), operation_of(ASTER_OP_ACQUIRE, candidate, 0), now_ns);
    return decision.outcome == ASTER_GRANTED ? decision.epoch : -1;
}

static void a_lease_expires_exactly_at_its_ttl(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    assert_int_equal(acquire(table, "r", "a", 5), 1);
    assert_int_equal(acquire(table, "r", "b", 5 + TTL_NS - 1), -1);
    assert_int_equal(aster_table_deadline(table, aster_text("r")), 5 + TTL_NS);
    assert_int_equal(acquire(table, "r", "b", 5 + TTL_NS), 2);
    aster_table_destroy(table);
}

static void the_ttl_of_the_row_decides_not_the_candidates(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    struct aster_operation brief = operation_of(ASTER_OP_ACQUIRE, "b", 0);
    brief.ttl_ms = 100;
    acquire(table, "r", "a", 0);
    assert_int_equal(apply(table, aster_text("r"), brief, TTL_NS - 1).outcome, ASTER_DENIED);
    aster_table_destroy(table);
}

static void a_restart_gives_a_full_ttl_and_advances_no_epoch(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    acquire(table, "r", "a", 0);
    apply(table, aster_text("free"), operation_of(ASTER_OP_REVOKE, "op", 0), 0);
    assert_int_equal(aster_table_restart(table, 3 * TTL_NS), 1);
    assert_null(aster_table_check(table));
    assert_int_equal(acquire(table, "r", "b", 4 * TTL_NS - 1), -1);
    struct aster_decision renewed = apply(table, aster_text("r"), operation_of(ASTER_OP_RENEW, "a", 1), 4 * TTL_NS - 1);
    assert_int_equal(renewed.outcome, ASTER_GRANTED);
    assert_int_equal(renewed.epoch, 1);
    aster_table_destroy(table);
}

static void a_forgotten_resource_never_reuses_an_epoch(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    assert_int_equal(acquire(table, "r", "a", 0), 1);
    apply(table, aster_text("r"), operation_of(ASTER_OP_RELEASE, "a", 1), 0);
    apply(table, aster_text("r"), operation_of(ASTER_OP_FORGET, "op", 0), 0);
    assert_false(aster_table_has(table, aster_text("r")));
    assert_int_equal(aster_table_floor(table), 2);
    assert_int_equal(acquire(table, "r", "a", 0), 3);
    assert_int_equal(acquire(table, "never seen", "a", 0), 3);
    aster_table_raise_floor(table, 1);
    assert_int_equal(aster_table_floor(table), 2);
    aster_table_destroy(table);
}

static void expired_leases_surface_in_the_order_of_their_deadlines(void **state)
{
    (void)state;
    struct aster_table *table = table_with(100);
    char name[8];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "r%d", i);
        acquire(table, name, "a", (i * 37 % 50) * MS);
    }
    struct aster_expired_lease lease;
    assert_false(aster_table_next_expired(table, TTL_NS - 1, &lease));
    int64_t last_ns = 0;
    int surfaced = 0;
    while (aster_table_next_expired(table, TTL_NS + 49 * MS, &lease)) {
        int64_t deadline_ns = aster_table_deadline(table, lease.resource);
        assert_true(deadline_ns >= last_ns);
        last_ns = deadline_ns;
        surfaced++;
    }
    assert_int_equal(surfaced, 50);
    aster_table_destroy(table);
}

static void a_renewed_or_released_lease_does_not_surface_early(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    struct aster_expired_lease lease;
    acquire(table, "renewed", "a", 0);
    acquire(table, "released", "a", 0);
    apply(table, aster_text("renewed"), operation_of(ASTER_OP_RENEW, "a", 1), 5 * MS);
    apply(table, aster_text("released"), operation_of(ASTER_OP_RELEASE, "a", 1), 5 * MS);
    assert_false(aster_table_next_expired(table, TTL_NS, &lease));
    assert_null(aster_table_check(table));
    assert_true(aster_table_next_expired(table, TTL_NS + 5 * MS, &lease));
    assert_true(aster_bytes_equal(lease.resource, aster_text("renewed")));
    assert_int_equal(lease.lease_revision, 1);
    aster_table_destroy(table);
}

static void a_table_without_held_rows_has_no_deadline(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    assert_true(aster_table_next_deadline(table) == INT64_MAX);
    acquire(table, "r", "a", 0);
    assert_int_equal(aster_table_next_deadline(table), TTL_NS);
    apply(table, aster_text("r"), operation_of(ASTER_OP_RELEASE, "a", 1), 0);
    assert_true(aster_table_next_deadline(table) == INT64_MAX);
    aster_table_destroy(table);
}

static void the_limit_of_resources_is_named_and_changes_nothing(void **state)
{
    (void)state;
    struct aster_table *table = table_with(2);
    acquire(table, "a", "h", 0);
    acquire(table, "b", "h", 0);
    uint64_t before = aster_table_state_hash(table);
    struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "h", 0);
    struct aster_table_result result;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_table_apply(table, &operation, 0, &result, &error), ASTER_ERR_LIMIT);
    assert_non_null(strstr(error.message, "resources_max is 2"));
    assert_true(aster_table_state_hash(table) == before);
    aster_table_destroy(table);
}

static void composed_and_decomposed_names_are_two_rows(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    assert_int_equal(acquire(table, "\xc3\xa9", "a", 0), 1);
    assert_int_equal(acquire(table, "e\xcc\x81", "b", 0), 1);
    assert_int_equal(aster_table_usage_get(table).held, 2);
    aster_table_destroy(table);
}

static void the_state_hash_ignores_the_order_of_insertion(void **state)
{
    (void)state;
    struct aster_table *forward = table_with(2000);
    struct aster_table *backward = table_with(2000);
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "r%d", i);
        acquire(forward, name, i % 2 != 0 ? "a" : "b", 0);
        snprintf(name, sizeof name, "r%d", 999 - i);
        acquire(backward, name, (999 - i) % 2 != 0 ? "a" : "b", 0);
    }
    assert_true(aster_table_state_hash(forward) == aster_table_state_hash(backward));
    apply(forward, aster_text("r7"), operation_of(ASTER_OP_RENEW, "a", 1), 0);
    assert_true(aster_table_state_hash(forward) != aster_table_state_hash(backward));
    aster_table_destroy(forward);
    aster_table_destroy(backward);
}

static void a_value_that_borrows_the_stored_one_is_stored_right(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    acquire(table, "r", "a", 0);
    struct aster_operation put = operation_of(ASTER_OP_PUT, "a", 1);
    put.value = aster_text("long value");
    put.value = apply(table, aster_text("r"), put, 0).snapshot.value;
    put.value.size = 4;
    put.value_revision = 1;
    struct aster_bytes stored = apply(table, aster_text("r"), put, 0).snapshot.value;
    assert_true(aster_bytes_equal(stored, aster_text("long")));
    aster_table_destroy(table);
}

static void a_row_that_breaks_a_rule_is_not_loaded(void **state)
{
    (void)state;
    struct aster_table *table = table_with(10);
    struct aster_row row = row_held("", 3);
    assert_int_equal(aster_table_load(table, aster_text("r"), &row, 0, NULL), ASTER_ERR_CORRUPT);
    assert_false(aster_table_has(table, aster_text("r")));
    row = row_held("a", 3);
    assert_int_equal(aster_table_load(table, aster_text("r"), &row, 7, NULL), ASTER_OK);
    assert_int_equal(aster_table_deadline(table, aster_text("r")), 7 + TTL_NS);
    aster_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_expires_exactly_at_its_ttl),
        cmocka_unit_test(the_ttl_of_the_row_decides_not_the_candidates),
        cmocka_unit_test(a_restart_gives_a_full_ttl_and_advances_no_epoch),
        cmocka_unit_test(a_forgotten_resource_never_reuses_an_epoch),
        cmocka_unit_test(expired_leases_surface_in_the_order_of_their_deadlines),
        cmocka_unit_test(a_renewed_or_released_lease_does_not_surface_early),
        cmocka_unit_test(a_table_without_held_rows_has_no_deadline),
        cmocka_unit_test(the_limit_of_resources_is_named_and_changes_nothing),
        cmocka_unit_test(composed_and_decomposed_names_are_two_rows),
        cmocka_unit_test(the_state_hash_ignores_the_order_of_insertion),
        cmocka_unit_test(a_value_that_borrows_the_stored_one_is_stored_right),
        cmocka_unit_test(a_row_that_breaks_a_rule_is_not_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
