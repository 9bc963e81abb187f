/* A lost reply is retried under the same id: same decision, no second effect. */
#include "support/operations.h"
#include "support/unit.h"

static struct aster_effect decide(const struct aster_row *row, struct aster_operation operation)
{
    struct aster_effect effect;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_transition(row, false, &operation, &effect, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return effect;
}

static void every_mutating_kind_is_answered_again_without_a_second_effect(void **state)
{
    (void)state;
    const struct aster_operation operations[] = {
        operation_of(ASTER_OP_RENEW, "a", 5), operation_of(ASTER_OP_RELEASE, "a", 5),
        operation_of(ASTER_OP_REVOKE, "op", 0), operation_of(ASTER_OP_PUT, "a", 5),
        operation_of(ASTER_OP_ACQUIRE, "a", 0)};
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        struct aster_operation operation = with_id(operations[i], 77);
        struct aster_row row = operation.kind == ASTER_OP_ACQUIRE ? aster_row_absent(5) : row_held("a", 5);
        struct aster_effect first = decide(&row, operation);
        assert_int_equal(first.decision.outcome, ASTER_GRANTED);
        assert_false(first.decision.replayed);
        struct aster_effect again = decide(&first.row, operation);
        assert_int_equal(again.decision.outcome, ASTER_GRANTED);
        assert_true(again.decision.replayed);
        assert_false(again.changed);
        assert_false(again.rearm);
        assert_int_equal(again.decision.epoch, first.decision.epoch);
        assert_memory_equal(&again.row, &first.row, sizeof first.row);
    }
}

static void a_takeover_is_told_again_as_a_takeover(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_operation operation = with_id(operation_of(ASTER_OP_ACQUIRE, "b", 0), 7);
    struct aster_effect first;
    assert_int_equal(aster_transition(&row, true, &operation, &first, NULL), ASTER_OK);
    assert_true(first.decision.takeover);
    assert_true(decide(&first.row, operation).decision.takeover);
}

static void the_memory_of_a_request_outlives_its_expiry(void **state)
{
    (void)state;
    struct aster_row row = aster_row_absent(0);
    struct aster_operation acquire = with_id(operation_of(ASTER_OP_ACQUIRE, "a", 0), 7);
    struct aster_effect granted = decide(&row, acquire);
    struct aster_effect expired = decide(&granted.row, operation_of(ASTER_OP_EXPIRE, "", 1));
    assert_false(expired.row.held);
    struct aster_effect again = decide(&expired.row, acquire);
    assert_true(again.decision.replayed);
    assert_int_equal(again.decision.epoch, 1);
    assert_int_equal(again.decision.snapshot.epoch, 2); /* the snapshot says that it is over */
    assert_false(again.decision.snapshot.held);
}

static void another_callers_equal_id_is_another_request(void **state)
{
    (void)state;
    struct aster_row row = aster_row_absent(0);
    struct aster_effect granted = decide(&row, with_id(operation_of(ASTER_OP_ACQUIRE, "a", 0), 7));
    struct aster_effect other = decide(&granted.row, with_id(operation_of(ASTER_OP_ACQUIRE, "b", 0), 7));
    assert_int_equal(other.decision.outcome, ASTER_DENIED);
    assert_false(other.decision.replayed);
}

static void an_id_reused_for_another_kind_is_an_error(void **state)
{
    (void)state;
    struct aster_row row = aster_row_absent(0);
    struct aster_effect granted = decide(&row, with_id(operation_of(ASTER_OP_ACQUIRE, "a", 0), 7));
    struct aster_operation operation = with_id(operation_of(ASTER_OP_RELEASE, "a", 1), 7);
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_effect effect;
    assert_int_equal(aster_transition(&granted.row, false, &operation, &effect, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "acquire"));
    assert_non_null(strstr(error.message, "release"));
}

static void an_all_zero_id_protects_nothing(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_effect first = decide(&row, operation_of(ASTER_OP_RENEW, "a", 5));
    struct aster_effect second = decide(&first.row, operation_of(ASTER_OP_RENEW, "a", 5));
    assert_false(second.decision.replayed);
    assert_int_equal(second.row.lease_revision, 2);
}

static void a_denied_request_is_not_remembered(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_operation operation = with_id(operation_of(ASTER_OP_ACQUIRE, "b", 0), 7);
    assert_int_equal(decide(&row, operation).decision.outcome, ASTER_DENIED);
    struct aster_effect released = decide(&row, with_id(operation_of(ASTER_OP_RELEASE, "a", 5), 8));
    struct aster_effect granted = decide(&released.row, operation);
    assert_int_equal(granted.decision.outcome, ASTER_GRANTED);
    assert_false(granted.decision.replayed);
}

static void a_retried_release_never_ends_a_newer_lease(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 1);
    struct aster_operation release = with_id(operation_of(ASTER_OP_RELEASE, "a", 1), 1);
    struct aster_effect released = decide(&row, release);
    struct aster_effect acquired = decide(&released.row, with_id(operation_of(ASTER_OP_ACQUIRE, "a", 0), 2));
    struct aster_effect retried = decide(&acquired.row, release);
    assert_int_equal(retried.decision.outcome, ASTER_DENIED);
    assert_int_equal(retried.decision.reason, ASTER_REASON_EPOCH_MISMATCH);
    assert_true(retried.row.held);
    assert_int_equal(retried.row.epoch, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mutating_kind_is_answered_again_without_a_second_effect),
        cmocka_unit_test(a_takeover_is_told_again_as_a_takeover),
        cmocka_unit_test(the_memory_of_a_request_outlives_its_expiry),
        cmocka_unit_test(another_callers_equal_id_is_another_request),
        cmocka_unit_test(an_id_reused_for_another_kind_is_an_error),
        cmocka_unit_test(an_all_zero_id_protects_nothing),
        cmocka_unit_test(a_denied_request_is_not_remembered),
        cmocka_unit_test(a_retried_release_never_ends_a_newer_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
