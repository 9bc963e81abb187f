/* Every predicate of the rules in both directions, and the order of refusals. */
#include "support/operations.h"
#include "support/unit.h"

static struct aster_effect decide(const struct aster_row *row, bool expired, struct aster_operation operation)
{
    struct aster_effect effect;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_transition(row, expired, &operation, &effect, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return effect;
}

static void expect_refused(const struct aster_row *row, bool expired, struct aster_operation operation,
                           enum aster_reason reason)
{
    struct aster_effect effect = decide(row, expired, operation);
    assert_int_equal(effect.decision.outcome, ASTER_DENIED);
    assert_string_equal(aster_reason_name(effect.decision.reason), aster_reason_name(reason));
    assert_false(effect.changed);
    assert_false(effect.rearm);
    assert_false(effect.removed);
    assert_int_equal(effect.decision.epoch, row->epoch);
    assert_int_equal(effect.decision.snapshot.epoch, row->epoch);
    assert_memory_equal(&effect.row, row, sizeof *row);
}

static struct aster_effect expect_granted(const struct aster_row *row, bool expired, struct aster_operation operation)
{
    struct aster_effect effect = decide(row, expired, operation);
    assert_string_equal(aster_reason_name(effect.decision.reason), "NONE");
    assert_int_equal(effect.decision.outcome, ASTER_GRANTED);
    return effect;
}

static void first_acquire_gives_epoch_1_and_arms(void **state)
{
    (void)state;
    struct aster_row row = aster_row_absent(0);
    struct aster_effect effect = expect_granted(&row, false, operation_of(ASTER_OP_ACQUIRE, "a", 0));
    assert_int_equal(effect.row.epoch, 1);
    assert_true(effect.row.held && effect.changed && effect.rearm);
    assert_true(aster_bytes_equal(effect.row.holder, aster_text("a")));
    assert_false(effect.decision.takeover);
}

static void acquire_of_a_held_row_is_refused_also_to_its_holder(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    expect_refused(&row, false, operation_of(ASTER_OP_ACQUIRE, "b", 0), ASTER_REASON_HELD_BY_OTHER);
    expect_refused(&row, false, operation_of(ASTER_OP_ACQUIRE, "a", 0), ASTER_REASON_HELD_BY_OTHER);
}

static void acquire_of_an_expired_row_takes_over_and_tells_the_story(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    row.value = aster_text("state");
    row.value_revision = 3;
    struct aster_effect effect = expect_granted(&row, true, operation_of(ASTER_OP_ACQUIRE, "b", 0));
    assert_true(effect.decision.takeover);
    assert_int_equal(effect.decision.epoch, 6);
    assert_true(aster_bytes_equal(effect.decision.snapshot.last_holder, aster_text("a")));
    assert_int_equal(effect.decision.snapshot.last_epoch_held, 5);
    assert_true(aster_bytes_equal(effect.decision.snapshot.value, aster_text("state")));
    assert_int_equal(effect.decision.snapshot.value_revision, 3);
}

static void take_over_own_needs_the_flag_and_the_same_identity(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_operation own = operation_of(ASTER_OP_ACQUIRE, "a", 0);
    own.flags = ASTER_OP_TAKE_OVER_OWN;
    struct aster_effect effect = expect_granted(&row, false, own);
    assert_int_equal(effect.row.epoch, 6);
    assert_true(effect.decision.takeover);
    own.caller = aster_text("b");
    expect_refused(&row, false, own, ASTER_REASON_HELD_BY_OTHER);
}

static void an_expiry_verdict_counts_only_while_epoch_and_revision_match(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    row.lease_revision = 2;
    struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "b", 5);
    operation.flags = ASTER_OP_EXPIRED_VERDICT;
    operation.lease_revision = 2;
    assert_int_equal(expect_granted(&row, false, operation).row.epoch, 6);
    operation.lease_revision = 1; /* renewed since */
    expect_refused(&row, true, operation, ASTER_REASON_HELD_BY_OTHER);
    operation.lease_revision = 2;
    operation.epoch = 4; /* taken over since */
    expect_refused(&row, true, operation, ASTER_REASON_HELD_BY_OTHER);
}

static void renew_refuses_in_the_order_not_held_epoch_holder_expired(void **state)
{
    (void)state;
    struct aster_row row = aster_row_absent(5);
    expect_refused(&row, false, operation_of(ASTER_OP_RENEW, "b", 4), ASTER_REASON_NOT_HELD);
    row = row_held("a", 5);
    expect_refused(&row, true, operation_of(ASTER_OP_RENEW, "b", 4), ASTER_REASON_EPOCH_MISMATCH);
    expect_refused(&row, true, operation_of(ASTER_OP_RENEW, "b", 6), ASTER_REASON_EPOCH_MISMATCH);
    expect_refused(&row, true, operation_of(ASTER_OP_RENEW, "b", 5), ASTER_REASON_NOT_HOLDER);
    expect_refused(&row, true, operation_of(ASTER_OP_RENEW, "a", 5), ASTER_REASON_EXPIRED);
    struct aster_effect effect = expect_granted(&row, false, operation_of(ASTER_OP_RENEW, "a", 5));
    assert_int_equal(effect.row.epoch, 5);
    assert_int_equal(effect.row.lease_revision, 1);
    assert_true(effect.rearm);
}

static void release_refuses_in_the_order_epoch_holder_and_ignores_expiry(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    expect_refused(&row, false, operation_of(ASTER_OP_RELEASE, "b", 4), ASTER_REASON_EPOCH_MISMATCH);
    expect_refused(&row, false, operation_of(ASTER_OP_RELEASE, "b", 5), ASTER_REASON_NOT_HOLDER);
    struct aster_effect effect = expect_granted(&row, true, operation_of(ASTER_OP_RELEASE, "a", 5));
    assert_int_equal(effect.row.epoch, 6);
    assert_false(effect.row.held);
    assert_int_equal(effect.row.last_epoch_held, 5);
    struct aster_row vacant = aster_row_absent(5);
    expect_refused(&vacant, false, operation_of(ASTER_OP_RELEASE, "a", 5), ASTER_REASON_NOT_HOLDER);
}

static void release_with_value_stores_both_or_neither(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    row.value_revision = 7;
    struct aster_operation operation = operation_of(ASTER_OP_RELEASE, "a", 5);
    operation.flags = ASTER_OP_WITH_VALUE;
    operation.value = aster_text("done");
    operation.value_revision = 6;
    expect_refused(&row, false, operation, ASTER_REASON_REVISION_MISMATCH);
    operation.value_revision = 7;
    struct aster_effect effect = expect_granted(&row, false, operation);
    assert_int_equal(effect.row.value_revision, 8);
    assert_int_equal(effect.row.epoch, 6);
    assert_true(aster_bytes_equal(effect.row.value, aster_text("done")));
}

static void revoke_advances_the_epoch_and_honours_an_expected_one(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_operation operation = operation_of(ASTER_OP_REVOKE, "op", 4);
    assert_int_equal(expect_granted(&row, false, operation).row.epoch, 6);
    operation.flags = ASTER_OP_EXPECT_EPOCH;
    expect_refused(&row, false, operation, ASTER_REASON_EPOCH_MISMATCH);
    operation.epoch = 5;
    struct aster_effect effect = expect_granted(&row, false, operation);
    assert_false(effect.row.held);
    assert_true(aster_bytes_equal(effect.row.last_holder, aster_text("a")));
    struct aster_row vacant = aster_row_absent(9);
    assert_int_equal(expect_granted(&vacant, false, operation_of(ASTER_OP_REVOKE, "op", 0)).row.epoch, 10);
}

static void expire_needs_the_very_lease_that_was_judged(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    row.lease_revision = 2;
    struct aster_operation operation = operation_of(ASTER_OP_EXPIRE, "", 5);
    operation.lease_revision = 1;
    expect_refused(&row, true, operation, ASTER_REASON_EPOCH_MISMATCH);
    operation.lease_revision = 2;
    assert_int_equal(expect_granted(&row, false, operation).row.epoch, 6);
    row.held = false;
    row.holder = aster_text("");
    expect_refused(&row, false, operation, ASTER_REASON_NOT_HELD);
}

static void put_follows_the_fence_rule_then_the_revision(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    row.value_revision = 1;
    expect_refused(&row, false, operation_of(ASTER_OP_PUT, "b", 4), ASTER_REASON_STALE_EPOCH);
    expect_refused(&row, false, operation_of(ASTER_OP_PUT, "b", 6), ASTER_REASON_FUTURE_EPOCH);
    expect_refused(&row, false, operation_of(ASTER_OP_PUT, "b", 5), ASTER_REASON_NOT_HOLDER);
    expect_refused(&row, false, operation_of(ASTER_OP_PUT, "a", 5), ASTER_REASON_REVISION_MISMATCH);
    struct aster_operation operation = operation_of(ASTER_OP_PUT, "a", 5);
    operation.value_revision = 1;
    operation.value = aster_text("v");
    struct aster_effect effect = expect_granted(&row, true, operation); /* expiry alone rejects no write */
    assert_int_equal(effect.row.value_revision, 2);
    assert_false(effect.rearm);
    struct aster_row vacant = aster_row_absent(5);
    expect_refused(&vacant, false, operation_of(ASTER_OP_PUT, "a", 5), ASTER_REASON_NOT_HELD);
}

static void forget_removes_a_free_row_only(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    expect_refused(&row, true, operation_of(ASTER_OP_FORGET, "op", 0), ASTER_REASON_HELD_BY_OTHER);
    struct aster_row vacant = aster_row_absent(6);
    assert_true(expect_granted(&vacant, false, operation_of(ASTER_OP_FORGET, "op", 0)).removed);
}

static void inspect_changes_nothing_and_never_collides_with_a_request_id(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_effect renewed = expect_granted(&row, false, with_id(operation_of(ASTER_OP_RENEW, "a", 5), 1));
    struct aster_effect effect = expect_granted(&renewed.row, true, with_id(operation_of(ASTER_OP_INSPECT, "a", 0), 1));
    assert_false(effect.changed);
    assert_false(effect.decision.replayed);
    assert_memory_equal(&effect.row, &renewed.row, sizeof renewed.row);
}

static void a_decision_carries_no_epoch_where_the_operation_has_none(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    struct aster_operation operation = operation_of(ASTER_OP_ACQUIRE, "b", 4);
    operation.flags = ASTER_OP_EXPIRED_VERDICT;
    assert_int_equal(decide(&row, false, operation).decision.carried_epoch, 0);
    assert_int_equal(decide(&row, false, operation_of(ASTER_OP_RENEW, "b", 4)).decision.carried_epoch, 4);
}

static enum aster_reason fence(const struct aster_row *row, const char *resource, int64_t epoch, const char *holder,
                               const char *writer)
{
    struct aster_fence carried = {aster_text(resource), epoch, aster_text(holder)};
    struct aster_verdict verdict = aster_fence_verdict(row, aster_text("r"), &carried, aster_text(writer));
    assert_int_equal(verdict.carried_epoch, epoch);
    assert_int_equal(verdict.current_epoch, row->epoch);
    return verdict.reason;
}

static void the_fence_rule_refuses_in_its_order(void **state)
{
    (void)state;
    struct aster_row row = row_held("a", 5);
    assert_int_equal(fence(&row, "other", 4, "b", "b"), ASTER_REASON_WRONG_RESOURCE);
    assert_int_equal(fence(&row, "r", 4, "b", "b"), ASTER_REASON_STALE_EPOCH);
    assert_int_equal(fence(&row, "r", 6, "a", "a"), ASTER_REASON_FUTURE_EPOCH);
    assert_int_equal(fence(&row, "r", 5, "a", "b"), ASTER_REASON_NOT_HOLDER);
    assert_int_equal(fence(&row, "r", 5, "b", "a"), ASTER_REASON_NOT_HOLDER);
    assert_int_equal(fence(&row, "r", 5, "a", "a"), ASTER_REASON_NONE);
    struct aster_row vacant = aster_row_absent(5);
    assert_int_equal(fence(&vacant, "r", 4, "a", "a"), ASTER_REASON_STALE_EPOCH);
    assert_int_equal(fence(&vacant, "r", 5, "a", "a"), ASTER_REASON_NOT_HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_acquire_gives_epoch_1_and_arms),
        cmocka_unit_test(acquire_of_a_held_row_is_refused_also_to_its_holder),
        cmocka_unit_test(acquire_of_an_expired_row_takes_over_and_tells_the_story),
        cmocka_unit_test(take_over_own_needs_the_flag_and_the_same_identity),
        cmocka_unit_test(an_expiry_verdict_counts_only_while_epoch_and_revision_match),
        cmocka_unit_test(renew_refuses_in_the_order_not_held_epoch_holder_expired),
        cmocka_unit_test(release_refuses_in_the_order_epoch_holder_and_ignores_expiry),
        cmocka_unit_test(release_with_value_stores_both_or_neither),
        cmocka_unit_test(revoke_advances_the_epoch_and_honours_an_expected_one),
        cmocka_unit_test(expire_needs_the_very_lease_that_was_judged),
        cmocka_unit_test(put_follows_the_fence_rule_then_the_revision),
        cmocka_unit_test(forget_removes_a_free_row_only),
        cmocka_unit_test(inspect_changes_nothing_and_never_collides_with_a_request_id),
        cmocka_unit_test(a_decision_carries_no_epoch_where_the_operation_has_none),
        cmocka_unit_test(the_fence_rule_refuses_in_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
