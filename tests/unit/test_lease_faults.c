/* What the network and the store do to a handle, and what it must do then. ttl 10 s, renewals every 3 s, margin 1 s:
 * the self-limit is 8.995 s after the last successful sending. */
#include "support/lease_world.h"

#define LIMIT_MS 8995

static const struct fault none = {FAULT_NONE, 0, 0};
static const struct fault black_hole = {FAULT_BLACK_HOLE, 0, 0};
static const struct fault hang = {FAULT_HANG, 0, 0};
static const struct fault unreachable = {FAULT_FAIL, ASTER_ERR_UNREACHABLE, 0};

/* Rows 1, 10, 82: cut off right after the acquire. */
static void a_holder_that_is_cut_off_stops_at_its_limit_and_its_late_write_is_refused(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_fence saved = *aster_lease_fence(a);
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, black_hole);
    fake_clock_advance_ms(world->clock, LIMIT_MS - 1);
    assert_non_null(aster_lease_fence(a));
    fake_clock_advance_ms(world->clock, 1);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_UNREACHABLE);
    assert_int_equal(lease_world_grant_to(world, "B"), -1);
    fake_clock_advance_ms(world->clock, 10000 - LIMIT_MS);
    assert_int_equal(lease_world_grant_to(world, "B"), 2);
    fake_clock_advance_ms(world->clock, 1000);
    int data = 0;
    assert_int_equal(lease_world_write(world, &saved, &data), ASTER_REASON_STALE_EPOCH);
    assert_int_equal(data, 0);
    aster_lease_destroy(a);
}

/* Row 10: a renewal that is accepted and never answered, by a serializer that is deaf to cancelling. */
static void a_renewal_that_hangs_for_ever_does_not_stop_the_limit_and_is_asked_back(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, hang);
    fake_clock_advance_ms(world->clock, LIMIT_MS);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_true(faulty_serializer_asked_back(world->path) >= 1);
    assert_true(lease_world_report(a).renew_errors >= 1);
    aster_lease_destroy(a);
    assert_int_equal(aster_runtime_handles(world->runtime), 1); /* its memory waits for the answer */
    faulty_serializer_unhang(world->path);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
}

struct nth {
    int seen;
    int faulty_from;
    int faulty_until;
    struct fault fault;
};

static struct fault nth_renewal(const struct aster_operation *operation, void *user)
{
    struct nth *nth = user;
    if (operation->kind != ASTER_OP_RENEW) {
        return none;
    }
    nth->seen++;
    return nth->seen >= nth->faulty_from && nth->seen < nth->faulty_until ? nth->fault : none;
}

/* Rows 2, 14: one failure is retried soon, and nothing is lost by it. */
static void one_failed_renewal_is_retried_quickly_and_the_lease_stays_held(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct nth nth = {0, 1, 2, unreachable};
    faulty_serializer_script(world->path, nth_renewal, &nth);
    fake_clock_advance_ms(world->clock, 3400);
    assert_int_equal(nth.seen, 2); /* at 3 s, and again within 0.4 s */
    struct aster_lease_report report = lease_world_report(a);
    assert_int_equal(report.status, ASTER_LEASE_HELD);
    assert_int_equal(report.renew_errors, 1);
    assert_int_equal(report.renewals, 1);
    assert_int_equal(report.epoch, 1);
    assert_int_equal(report.last_error.status, ASTER_ERR_UNREACHABLE);
    aster_lease_destroy(a);
}

/* Row 13: errors until the limit; the last one is in the report. */
static void a_store_that_fails_until_the_limit_loses_the_lease_and_the_report_says_why(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_FAIL, ASTER_ERR_IO, 0});
    fake_clock_advance_ms(world->clock, LIMIT_MS);
    struct aster_lease_report report = lease_world_report(a);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_int_equal(report.last_error.status, ASTER_ERR_IO);
    int sent = faulty_serializer_count(world->path, ASTER_OP_RENEW);
    assert_in_range(sent, 4, 30); /* quick retries, but no storm */
    fake_clock_advance_ms(world->clock, 60000);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), sent); /* row 11: it does not go on */
    aster_lease_destroy(a);
}

/* Row 55: the limit counts from the sending, not from the reply. */
static void a_slow_reply_does_not_stretch_the_limit(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct nth nth = {0, 1, 2, {FAULT_DELAY_REPLY, 0, 2500}};
    faulty_serializer_script(world->path, nth_renewal, &nth);
    fake_clock_advance_ms(world->clock, 5600); /* sent at 3 s, answered at 5.5 s */
    int64_t limit_ms = (lease_world_report(a).limit_ns - world->began_ns) / 1000000;
    assert_int_equal(limit_ms, 3000 + LIMIT_MS);
    aster_lease_destroy(a);
}

static void a_renewal_that_succeeds_after_the_limit_does_not_bring_the_fence_back(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_DELAY_REPLY, 0, 6500});
    fake_clock_advance_ms(world->clock, LIMIT_MS);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    fake_clock_advance_ms(world->clock, 2000); /* the reply arrives at 9.5 s: granted until 13 s */
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    aster_lease_destroy(a);
}

/* Row 38: the serializer saw the ttl pass. */
static void a_renewal_that_arrives_after_the_ttl_is_denied_and_fences(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_DELAY_REQUEST, 0, 7001});
    fake_clock_advance_ms(world->clock, 3000);
    fake_clock_leap_ms(world->clock, 7001); /* nobody ran in between: delivered at 10.001 s */
    fake_clock_advance_ms(world->clock, 10);
    struct aster_lease_report report = lease_world_report(a);
    assert_true(report.status == ASTER_LEASE_FENCED || report.status == ASTER_LEASE_LOST);
    assert_null(aster_lease_fence(a));
    struct aster_lease *again = lease_world_acquire(world, "A");
    assert_int_equal(aster_lease_fence(again)->epoch, 2);
    aster_lease_destroy(a);
    aster_lease_destroy(again);
}

/* The assumption about clocks is broken: the store's runs away. The denial is definitive all the same. */
static void a_renewal_denied_as_expired_fences_with_that_reason(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_DENY_EXPIRED, 0, 0});
    fake_clock_advance_ms(world->clock, 3000);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_FENCED);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_EXPIRED);
    aster_lease_destroy(a);
}

/* Row 49, 137: suspend. */
static void a_suspended_holder_is_lost_by_a_clock_jump(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    fake_clock_leap_ms(world->clock, 3600000);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_CLOCK_JUMP);
    aster_lease_destroy(a);
}

/* Row 22: the check is made at call time; no thread has to have run. */
static void a_fence_is_refused_past_the_limit_although_no_timer_has_run(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_runtime_destroy(NULL); /* legal */
    fake_clock_clock(world->clock)->ops->unsubscribe(fake_clock_clock(world->clock)->self, world->runtime);
    fake_clock_advance_ms(world->clock, LIMIT_MS - 1);
    assert_non_null(aster_lease_fence(a));
    fake_clock_advance_ms(world->clock, 1);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST); /* nobody hears HELD past the limit */
    aster_lease_destroy(a);
}

static void a_closed_serializer_ends_the_lease_as_closed(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_serializer_close(faulty_serializer_serializer(world->path));
    fake_clock_advance_ms(world->clock, 3000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_int_equal(lease_world_report(a).reason, ASTER_LEASE_REASON_CLOSED);
    aster_lease_destroy(a);
}

/* Row 17-like: the store is busy for 5 s, then works. */
static void a_busy_store_within_the_limit_costs_nothing(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_FAIL, ASTER_ERR_BUSY, 0});
    fake_clock_advance_ms(world->clock, 8900);
    faulty_serializer_always(world->path, ASTER_OP_RENEW, none);
    fake_clock_advance_ms(world->clock, 60000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_HELD);
    assert_int_equal(lease_world_report(a).epoch, 1);
    aster_lease_destroy(a);
}

/* Row 56: the ttl means what it says. */
static void the_remaining_time_falls_to_zero_and_the_next_one_is_granted_at_the_ttl(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, (enum aster_operation_kind)0,
                             (struct fault){FAULT_FAIL, ASTER_ERR_UNREACHABLE, 0});
    for (int64_t ms = 0; ms < 8995; ms += 257) {
        fake_clock_advance_ms(world->clock, ms - lease_world_elapsed_ms(world));
        assert_int_equal(lease_world_report(a).remaining_ns, (8995 - ms) * 1000000);
        assert_int_equal(lease_world_row(world).remaining_ns, (10000 - ms) * 1000000);
    }
    fake_clock_advance_ms(world->clock, 9999 - lease_world_elapsed_ms(world));
    assert_int_equal(lease_world_report(a).remaining_ns, 0);
    assert_int_equal(lease_world_grant_to(world, "B"), -1);
    fake_clock_advance_ms(world->clock, 1);
    assert_int_equal(lease_world_grant_to(world, "B"), 2);
    aster_lease_destroy(a);
}

/* Row 59: 100,000 pairs of acquire and renew see a sound remaining time. */
static void the_remaining_time_after_a_renewal_is_never_rounded_to_nothing(void **state)
{
    struct lease_world *world = *state;
    for (int i = 0; i < 100000; i++) {
        int64_t epoch = lease_world_grant_to(world, "A");
        struct aster_operation renew = ASTER_OPERATION_INIT;
        renew.kind = ASTER_OP_RENEW;
        renew.resource = aster_text("r");
        renew.caller = aster_text("A");
        renew.epoch = epoch;
        struct aster_reply reply = ASTER_REPLY_INIT;
        assert_int_equal(aster_serializer_call(world->store, &renew, 0, &reply, NULL), ASTER_OK);
        int64_t remaining_ns = reply.decision.snapshot.remaining_ns;
        assert_true(remaining_ns > INT64_C(9000000000) && remaining_ns <= INT64_C(10000000000));
        aster_reply_fini(&reply);
        lease_world_revoke(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_holder_that_is_cut_off_stops_at_its_limit_and_its_late_write_is_refused),
        LEASE_TEST(a_renewal_that_hangs_for_ever_does_not_stop_the_limit_and_is_asked_back),
        LEASE_TEST(one_failed_renewal_is_retried_quickly_and_the_lease_stays_held),
        LEASE_TEST(a_store_that_fails_until_the_limit_loses_the_lease_and_the_report_says_why),
        LEASE_TEST(a_slow_reply_does_not_stretch_the_limit),
        LEASE_TEST(a_renewal_that_succeeds_after_the_limit_does_not_bring_the_fence_back),
        LEASE_TEST(a_renewal_that_arrives_after_the_ttl_is_denied_and_fences),
        LEASE_TEST(a_renewal_denied_as_expired_fences_with_that_reason),
        LEASE_TEST(a_suspended_holder_is_lost_by_a_clock_jump),
        LEASE_TEST(a_fence_is_refused_past_the_limit_although_no_timer_has_run),
        LEASE_TEST(a_closed_serializer_ends_the_lease_as_closed),
        LEASE_TEST(a_busy_store_within_the_limit_costs_nothing),
        LEASE_TEST(the_remaining_time_falls_to_zero_and_the_next_one_is_granted_at_the_ttl),
        LEASE_TEST(the_remaining_time_after_a_renewal_is_never_rounded_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
