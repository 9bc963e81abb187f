/* Counters, names, values and ttls at their limits. */
#include "support/operations.h"
#include "support/unit.h"

static aster_status status_of(const struct aster_row *row, struct aster_operation operation)
{
    struct aster_effect effect;
    struct aster_effect untouched;
    struct aster_error error = ASTER_ERROR_INIT;
    memset(&effect, 0x5a, sizeof effect);
    memcpy(&untouched, &effect, sizeof effect);
    aster_status status = aster_transition(row, false, &operation, &effect, &error);
    if (status != ASTER_OK) {
        assert_memory_equal(&effect, &untouched, sizeof effect);
        assert_int_equal(error.status, status);
        assert_true(strlen(error.message) > 0);
    }
    return status;
}

static void epochs_pass_32_bits_without_wrapping(void **state)
{
    (void)state;
    const int64_t epochs[] = {INT64_C(1) << 31, (INT64_C(1) << 32) - 1, INT64_C(1) << 32, INT64_MAX - 1};
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        struct aster_row row = aster_row_absent(epochs[i]);
        struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "a", 0);
        struct aster_effect effect;
        assert_int_equal(aster_transition(&row, false, &operation, &effect, NULL), ASTER_OK);
        assert_true(effect.row.epoch == epochs[i] + 1);
        struct aster_fence stale = {aster_text("r"), epochs[i], aster_text("a")};
        assert_int_equal(aster_fence_verdict(&effect.row, aster_text("r"), &stale, aster_text("a")).reason,
                         ASTER_REASON_STALE_EPOCH);
    }
}

static void an_exhausted_epoch_is_an_error_and_changes_nothing(void **state)
{
    (void)state;
    struct aster_row vacant = aster_row_absent(INT64_MAX);
    struct aster_row held = row_held("a", INT64_MAX);
    assert_int_equal(status_of(&vacant, operation_of(ASTER_OP_ACQUIRE, "a", 0)), ASTER_ERR_COUNTER_EXHAUSTED);
    assert_int_equal(status_of(&vacant, operation_of(ASTER_OP_REVOKE, "op", 0)), ASTER_ERR_COUNTER_EXHAUSTED);
    assert_int_equal(status_of(&held, operation_of(ASTER_OP_RELEASE, "a", INT64_MAX)), ASTER_ERR_COUNTER_EXHAUSTED);
    assert_int_equal(status_of(&held, operation_of(ASTER_OP_EXPIRE, "", INT64_MAX)), ASTER_ERR_COUNTER_EXHAUSTED);
    /* A refusal comes before the counter is looked at. */
    assert_int_equal(status_of(&held, operation_of(ASTER_OP_ACQUIRE, "b", 0)), ASTER_OK);
    assert_int_equal(status_of(&held, operation_of(ASTER_OP_RENEW, "a", INT64_MAX)), ASTER_OK);
}

static void exhausted_revisions_are_errors_and_change_nothing(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 1);
    row.lease_revision = INT64_MAX;
    row.value_revision = INT64_MAX;
    assert_int_equal(status_of(&row, operation_of(ASTER_OP_RENEW, "a", 1)), ASTER_ERR_COUNTER_EXHAUSTED);
    struct aster_operation operation = operation_of(ASTER_OP_PUT, "a", 1);
    operation.value_revision = INT64_MAX;
    assert_int_equal(status_of(&row, operation), ASTER_ERR_COUNTER_EXHAUSTED);
    operation = operation_of(ASTER_OP_RELEASE, "a", 1);
    operation.flags = ASTER_OP_WITH_VALUE;
    operation.value_revision = INT64_MAX;
    assert_int_equal(status_of(&row, operation), ASTER_ERR_COUNTER_EXHAUSTED);
}

static void names_of_every_allowed_length_are_decided_and_others_refused(void **state)
{
    (void)state;
    static char name[600];
    memset(name, 'n', sizeof name);
    struct aster_row row = aster_row_absent(0);
    const struct {
        size_t size;
        aster_status status;
    } cases[] = {{0, ASTER_ERR_INVALID}, {1, ASTER_OK},   {64, ASTER_OK},
                 {255, ASTER_OK},        {512, ASTER_OK}, {513, ASTER_ERR_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "a", 0);
        operation.resource = (struct aster_bytes){name, cases[i].size};
        assert_int_equal(status_of(&row, operation), cases[i].status);
    }
    struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "a", 0);
    operation.caller = (struct aster_bytes){name, 256};
    assert_int_equal(status_of(&row, operation), ASTER_OK);
    operation.caller.size = 257;
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
}

static void nul_and_invalid_utf8_in_any_name_are_refused(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 1);
    const struct aster_bytes bad[] = {{"a\0b", 3}, {"a\xff", 2}, {"\xc3", 1}, {"a\n", 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_operation operation = operation_of(ASTER_OP_PUT, "a", 1);
        operation.resource = bad[i];
        assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
        operation = operation_of(ASTER_OP_PUT, "a", 1);
        operation.caller = bad[i];
        assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
        operation = operation_of(ASTER_OP_PUT, "a", 1);
        operation.holder = bad[i];
        assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
    }
}

static void a_value_has_a_limit_of_64_kib(void **state)
{
    (void)state;
    static const char value[ASTER_VALUE_MAX + 1];
    struct aster_row row = row_held("a", 1);
    struct aster_operation operation = operation_of(ASTER_OP_PUT, "a", 1);
    operation.value = (struct aster_bytes){value, ASTER_VALUE_MAX};
    assert_int_equal(status_of(&row, operation), ASTER_OK);
    operation.value.size++;
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
}

static void a_ttl_outside_its_bounds_is_refused(void **state)
{
    (void)state;
    struct aster_limits limits = ASTER_LIMITS_INIT;
    const int64_t good[] = {100, 86400000};
    const int64_t bad[] = {INT64_MIN, -1, 0, 99, 86400001, INT64_MAX};
    struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "a", 0);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        operation.ttl_ms = good[i];
        assert_int_equal(aster_operation_check(&operation, &limits, NULL), ASTER_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        operation.ttl_ms = bad[i];
        assert_int_equal(aster_operation_check(&operation, &limits, NULL), ASTER_ERR_INVALID);
    }
}

static void unknown_kinds_stray_flags_and_negative_counters_are_refused(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 1);
    struct aster_operation operation = operation_of((enum aster_operation_kind)0, "a", 0);
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
    operation = operation_of((enum aster_operation_kind)9, "a", 0);
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
    operation = operation_of(ASTER_OP_RENEW, "a", 1);
    operation.flags = ASTER_OP_TAKE_OVER_OWN;
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
    operation = operation_of(ASTER_OP_RENEW, "a", -1);
    assert_int_equal(status_of(&row, operation), ASTER_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_pass_32_bits_without_wrapping),
        cmocka_unit_test(an_exhausted_epoch_is_an_error_and_changes_nothing),
        cmocka_unit_test(exhausted_revisions_are_errors_and_change_nothing),
        cmocka_unit_test(names_of_every_allowed_length_are_decided_and_others_refused),
        cmocka_unit_test(nul_and_invalid_utf8_in_any_name_are_refused),
        cmocka_unit_test(a_value_has_a_limit_of_64_kib),
        cmocka_unit_test(a_ttl_outside_its_bounds_is_refused),
        cmocka_unit_test(unknown_kinds_stray_flags_and_negative_counters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
