/* The ordinary life of a handle: hold, lapse, release, be revoked, wait. */
#include "support/lease_world.h"

static void a_live_holder_renews_and_keeps_its_epoch_for_ten_ttl(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    for (int i = 0; i < 100; i++) {
        fake_clock_advance_ms(world->clock, 1000);
        const struct aster_fence *fence = aster_lease_fence(a);
        assert_non_null(fence);
        assert_int_equal(fence->epoch, 1);
        assert_null(lease_world_acquire(world, "B"));
    }
    assert_int_equal(lease_world_report(a).renewals, 33); /* at +3, +6, ... +99 s */
    aster_lease_destroy(a);
}

/* Row 28: the last reference goes without a release. */
static void a_destroyed_handle_renews_no_more_and_the_next_one_is_granted_at_the_ttl(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_destroy(a);
    fake_clock_advance_ms(world->clock, 9999);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), 0);
    assert_null(lease_world_acquire(world, "B"));
    fake_clock_advance_ms(world->clock, 1);
    struct aster_lease *b = lease_world_acquire(world, "B");
    assert_non_null(b);
    assert_int_equal(aster_lease_fence(b)->epoch, 2);
    aster_lease_destroy(b);
}

static void a_dropped_handle_is_released_locally_and_tells_nobody(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_drop(a);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_CLOSED);
    fake_clock_advance_ms(world->clock, 5000);
    assert_int_equal(faulty_serializer_count(world->path, (enum aster_operation_kind)0), 1);
    assert_true(lease_world_row(world).held);
    aster_lease_destroy(a);
}

static void a_released_lease_is_free_at_once_and_supplies_no_fence(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
    struct aster_lease *b = lease_world_acquire(world, "B");
    assert_int_equal(aster_lease_fence(b)->epoch, 3);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 8, 137: the renewal is answered with a definitive denial. */
static void a_revoked_lease_is_fenced_by_the_reply_and_sends_no_further_renewal(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    lease_world_revoke(world);
    fake_clock_advance_ms(world->clock, 3000);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_FENCED);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_REVOKED);
    int sent = faulty_serializer_count(world->path, ASTER_OP_RENEW);
    fake_clock_advance_ms(world->clock, 60000);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), sent);
    aster_lease_destroy(a);
}

/* Row 32: it loses to B and never reports that it leads again. */
static void a_holder_that_lost_to_another_is_fenced_as_denied(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    lease_world_revoke(world);
    assert_int_equal(lease_world_grant_to(world, "B"), 3);
    fake_clock_advance_ms(world->clock, 3000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_FENCED);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_DENIED);
    fake_clock_advance_ms(world->clock, 60000);
    assert_null(aster_lease_fence(a));
    aster_lease_destroy(a);
}

/* Row 41, 44: the same identity is no permission; "take over own" is, and fences the earlier incarnation. */
static void the_same_identity_is_denied_unless_it_asks_to_take_over_its_own(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *first = lease_world_acquire(world, "A");
    assert_null(lease_world_acquire(world, "A"));
    world->options.take_over_own = true;
    struct aster_lease *second = lease_world_acquire(world, "A");
    assert_int_equal(aster_lease_fence(second)->epoch, 2);
    int data = 0;
    struct aster_fence old = {aster_text("r"), 1, aster_text("A")};
    assert_int_equal(lease_world_write(world, &old, &data), ASTER_REASON_STALE_EPOCH);
    assert_int_equal(data, 0);
    fake_clock_advance_ms(world->clock, 3000);
    assert_int_equal(lease_world_report(first).status, ASTER_LEASE_FENCED);
    assert_int_equal(lease_world_report(second).status, ASTER_LEASE_HELD);
    aster_lease_destroy(first);
    aster_lease_destroy(second);
}

/* Row 50: the holder's ttl decides, not the candidate's. */
static void a_candidate_with_a_shorter_ttl_waits_for_the_holders(void **state)
{
    struct lease_world *world = *state;
    world->options.ttl_ms = 30000;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_drop(a);
    world->options.ttl_ms = 10000;
    fake_clock_advance_ms(world->clock, 29999);
    assert_null(lease_world_acquire(world, "B"));
    fake_clock_advance_ms(world->clock, 1);
    struct aster_lease *b = lease_world_acquire(world, "B");
    assert_non_null(b);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 52: the wall clock is for display only. */
static void wall_clock_jumps_change_nothing(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    fake_clock_shift_wall_ms(world->clock, 86400000);
    fake_clock_advance_ms(world->clock, 5000);
    assert_non_null(aster_lease_fence(a));
    fake_clock_shift_wall_ms(world->clock, -2 * INT64_C(86400000));
    fake_clock_advance_ms(world->clock, 5000);
    assert_non_null(aster_lease_fence(a));
    int64_t remaining_ns = lease_world_row(world).remaining_ns;
    assert_true(remaining_ns > 0 && remaining_ns <= INT64_C(10000000000));
    aster_lease_destroy(a);
}

/* Row 89: the grant tells whose work it continues, and a value revision from before is refused. */
static void a_grant_tells_who_held_last_and_an_old_value_revision_is_refused(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_drop(a);
    fake_clock_advance_ms(world->clock, 10000);
    assert_int_equal(lease_world_grant_to(world, "B"), 2);
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_fence fence_b = {aster_text("r"), 2, aster_text("B")};
    assert_int_equal(aster_put(world->store, &fence_b, aster_text("B"), 0, aster_text("by B"), &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.outcome, ASTER_GRANTED);
    fake_clock_advance_ms(world->clock, 10000);
    struct aster_lease *again = lease_world_acquire(world, "A");
    assert_int_equal(aster_lease_grant(again, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.epoch, 3);
    assert_int_equal(reply.decision.snapshot.last_epoch_held, 2);
    assert_true(aster_bytes_equal(reply.decision.snapshot.last_holder, aster_text("B")));
    assert_true(aster_bytes_equal(reply.decision.snapshot.value, aster_text("by B")));
    assert_int_equal(
        aster_put(world->store, aster_lease_fence(again), aster_text("A"), 0, aster_text("by A"), &reply, NULL),
        ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_REVISION_MISMATCH);
    aster_reply_fini(&reply);
    aster_lease_destroy(a);
    aster_lease_destroy(again);
}

/* Row 86: fence first, then the work ends, then the release; nobody is granted meanwhile. */
static void a_quiesced_lease_supplies_no_fence_but_keeps_others_out_until_it_is_released(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_quiesce(a);
    assert_null(aster_lease_fence(a));
    for (int i = 0; i < 20; i++) {
        fake_clock_advance_ms(world->clock, 1000); /* the work drains, longer than a ttl */
        assert_null(lease_world_acquire(world, "B"));
        assert_null(aster_lease_fence(a));
    }
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    struct aster_lease *b = lease_world_acquire(world, "B");
    assert_non_null(b);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 61, 62, 58: refused at acquire, with the numbers. */
static void impossible_times_are_refused_with_the_inequality_and_its_numbers(void **state)
{
    struct lease_world *world = *state;
    const struct {
        int64_t ttl_ms, renew_ms, margin_ms;
        const char *said[3];
    } cases[] = {
        {10000, 10000, 1000, {"renew interval 10000", "10000", "1000"}},
        {10000, 9000, 1000, {"renew interval 9000", "ttl - margin", "8995.0"}},
        {3000, 1000, 2000, {"renew interval 1000", "3000", "2000"}},
        {3000, 1000, 3000, {"margin 3000", "ttl 3000", ""}},
        {0, -1, -1, {"ttl is 0 ms", "100", "86400000"}},
        {INT64_C(86400000000000), -1, -1, {"86400000000000", "ttl_max", "milliseconds"}},
        {10000, 0, 1000, {"renew interval 0", "", ""}},
        {10000, 3000, -2, {"margin -2", "", ""}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world->options.ttl_ms = cases[i].ttl_ms;
        world->options.renew_interval_ms = cases[i].renew_ms;
        world->options.margin_ms = cases[i].margin_ms;
        struct aster_lease *lease = NULL;
        struct aster_error error = ASTER_ERROR_INIT;
        assert_int_equal(
            aster_lease_acquire(world->store, aster_text("r"), aster_text("A"), &world->options, &lease, NULL, &error),
            ASTER_ERR_INVALID);
        assert_null(lease);
        for (size_t j = 0; j < 3; j++) {
            if (strstr(error.message, cases[i].said[j]) == NULL) {
                fail_msg("\"%s\" does not say \"%s\"", error.message, cases[i].said[j]);
            }
        }
    }
    assert_int_equal(lease_world_row(world).epoch, 0);
}

/* Row 80: an epoch is never used again. */
static void a_lost_holder_that_acquires_again_gets_a_fresh_epoch(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    fake_clock_leap_ms(world->clock, 3600000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    struct aster_lease *again = lease_world_acquire(world, "A");
    assert_int_equal(aster_lease_fence(again)->epoch, 2);
    fake_clock_advance_ms(world->clock, 60000);
    assert_non_null(aster_lease_fence(again)); /* row 4: the second one is renewed, too */
    aster_lease_destroy(a);
    aster_lease_destroy(again);
}

static void a_struct_of_zeroes_and_a_missing_store_are_refused_in_words(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_bytes name = aster_text("x");
    struct aster_lease_options zero = {0};
    zero.ttl_ms = 5000;
    assert_int_equal(aster_lease_start(world->store, name, name, &zero, &lease, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "ASTER_LEASE_OPTIONS_INIT"));
    assert_int_equal(aster_lease_acquire(NULL, name, name, NULL, &lease, NULL, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "no serializer"));
    assert_int_equal(aster_lease_release(NULL, 0, NULL, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_list(NULL, name, NULL, NULL, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_inspect(NULL, name, NULL, &error), ASTER_ERR_INVALID);
    assert_null(lease);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_live_holder_renews_and_keeps_its_epoch_for_ten_ttl),
        LEASE_TEST(a_destroyed_handle_renews_no_more_and_the_next_one_is_granted_at_the_ttl),
        LEASE_TEST(a_dropped_handle_is_released_locally_and_tells_nobody),
        LEASE_TEST(a_released_lease_is_free_at_once_and_supplies_no_fence),
        LEASE_TEST(a_revoked_lease_is_fenced_by_the_reply_and_sends_no_further_renewal),
        LEASE_TEST(a_holder_that_lost_to_another_is_fenced_as_denied),
        LEASE_TEST(the_same_identity_is_denied_unless_it_asks_to_take_over_its_own),
        LEASE_TEST(a_candidate_with_a_shorter_ttl_waits_for_the_holders),
        LEASE_TEST(wall_clock_jumps_change_nothing),
        LEASE_TEST(a_grant_tells_who_held_last_and_an_old_value_revision_is_refused),
        LEASE_TEST(a_quiesced_lease_supplies_no_fence_but_keeps_others_out_until_it_is_released),
        LEASE_TEST(impossible_times_are_refused_with_the_inequality_and_its_numbers),
        LEASE_TEST(a_struct_of_zeroes_and_a_missing_store_are_refused_in_words),
        LEASE_TEST(a_lost_holder_that_acquires_again_gets_a_fresh_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
