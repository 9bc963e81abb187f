/* Waiting for a lease, cancelling, and grants that arrive when nobody wants them any more. */
#include <stdlib.h>

#include "support/lease_world.h"

static struct aster_lease *start(struct lease_world *world, const char *holder, int64_t wait_ms)
{
    struct aster_lease *lease = NULL;
    world->options.wait_ms = wait_ms;
    assert_int_equal(aster_lease_start(faulty_serializer_serializer(world->path), aster_text("r"), aster_text(holder),
                                       &world->options, &lease, NULL),
                     ASTER_OK);
    world->options.wait_ms = 0;
    return lease;
}

static enum aster_lease_status status_of(const struct aster_lease *lease)
{
    return lease_world_report(lease).status;
}

static void a_poller_is_granted_within_one_poll_after_the_release(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 20000);
    assert_int_equal(status_of(b), ASTER_LEASE_ACQUIRING);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    fake_clock_advance_ms(world->clock, 250);
    assert_int_equal(status_of(b), ASTER_LEASE_HELD);
    assert_int_equal(aster_lease_fence(b)->epoch, 3);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 76: the poller is guided by the remaining time: at the ttl, not up to a poll later. */
static void a_poller_is_granted_at_the_dead_holders_ttl(void **state)
{
    struct lease_world *world = *state;
    assert_int_equal(lease_world_grant_to(world, "dead"), 1);
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 9999);
    assert_int_equal(status_of(b), ASTER_LEASE_ACQUIRING);
    fake_clock_advance_ms(world->clock, 6);
    assert_int_equal(status_of(b), ASTER_LEASE_HELD);
    assert_in_range(faulty_serializer_count(world->path, ASTER_OP_ACQUIRE), 10, 120); /* cheap, all the same */
    aster_lease_destroy(b);
}

static void a_queued_waiter_is_granted_at_once_and_polls_not_at_all(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 20000);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(status_of(b), ASTER_LEASE_HELD);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_ACQUIRE), 2);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 67: what was granted from a queue counts from its confirmation, not from when the waiting began. */
static void a_queued_grant_is_confirmed_and_its_limit_counts_from_the_confirmation(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 8000);
    int renewals = faulty_serializer_count(world->path, ASTER_OP_RENEW);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), renewals + 1);
    assert_int_equal(lease_world_report(b).limit_ns - world->began_ns, INT64_C(16995000000)); /* 8 s + 8.995 s */
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* Row 67: B was unreachable while its turn came and went. */
static void a_waiter_that_cannot_confirm_in_time_never_holds(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 30000);
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_BLACK_HOLE, 0, 0});
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    fake_clock_advance_ms(world->clock, 1);
    /* Granted at once, so the acquire itself is the confirmation. Make the second one late. */
    aster_lease_destroy(a);
    aster_lease_destroy(b);
    fake_clock_advance_ms(world->clock, 10000);
    assert_int_equal(lease_world_grant_to(world, "C"), 4);
    struct aster_lease *late = start(world, "D", 30000);
    fake_clock_advance_ms(world->clock, 10000); /* C lapses, D is granted from the queue, and cannot confirm */
    assert_int_equal(lease_world_row(world).epoch, 5);
    assert_int_equal(status_of(late), ASTER_LEASE_ACQUIRING);
    assert_null(aster_lease_fence(late));
    fake_clock_advance_ms(world->clock, 10000);
    assert_int_equal(lease_world_grant_to(world, "E"), 6); /* the grant lapsed */
    assert_null(aster_lease_fence(late));
    fake_clock_advance_ms(world->clock, 40000);
    assert_int_equal(status_of(late), ASTER_LEASE_NOT_GRANTED);
    aster_lease_destroy(late);
}

static void a_denial_at_the_end_of_the_wait_says_who_holds_it(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 5000);
    fake_clock_advance_ms(world->clock, 5000);
    assert_int_equal(status_of(b), ASTER_LEASE_NOT_GRANTED);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_lease_wait_acquired(b, 0, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_true(aster_bytes_equal(reply.decision.snapshot.holder, aster_text("A")));
    assert_true(reply.decision.snapshot.since_unix_ms > 0);
    aster_reply_fini(&reply);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

static void a_cancelled_waiter_leaves_the_queue_and_is_never_granted(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 60000);
    struct aster_lease *c = start(world, "C", 60000);
    aster_lease_cancel(b);
    assert_int_equal(status_of(b), ASTER_LEASE_NOT_GRANTED);
    assert_int_equal(aster_lease_wait_acquired(b, 0, NULL, NULL), ASTER_ERR_CANCELLED);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK); /* row 68: only C is granted */
    assert_int_equal(status_of(c), ASTER_LEASE_HELD);
    fake_clock_advance_ms(world->clock, 1000);
    assert_int_equal(status_of(b), ASTER_LEASE_NOT_GRANTED);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
    aster_lease_destroy(c);
}

/* Rows 25, 70: the grant commits while the acquire is being cancelled; 10,000 points in time. */
static void a_grant_that_races_with_a_cancel_is_released_and_never_seen(void **state)
{
    struct lease_world *world = *state;
    srand(25);
    for (int i = 0; i < 10000; i++) {
        int64_t delay_ms = rand() % 40;
        enum fault_kind kind = rand() % 2 == 0 ? FAULT_DELAY_REPLY : FAULT_DELAY_REQUEST;
        faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){kind, 0, delay_ms});
        struct aster_lease *lease = start(world, "A", 0);
        fake_clock_advance_ms(world->clock, rand() % 40);
        bool was_held = status_of(lease) == ASTER_LEASE_HELD;
        aster_lease_cancel(lease);
        if (!was_held) {
            assert_int_equal(status_of(lease), ASTER_LEASE_NOT_GRANTED);
            assert_null(aster_lease_fence(lease));
        } else {
            assert_int_equal(aster_lease_release(lease, 1000, NULL, NULL), ASTER_OK);
        }
        aster_lease_destroy(lease);
        fake_clock_advance_ms(world->clock, 100);
        assert_false(lease_world_row(world).held); /* "free within 1 s" */
        assert_int_equal(aster_runtime_handles(world->runtime), 0);
    }
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), 0);
}

/* Row 79: the request carries its deadline, so a server that gets to it late drops it. */
static void an_acquire_that_is_handled_after_its_deadline_takes_nothing(void **state)
{
    struct lease_world *world = *state;
    world->options.request_timeout_ms = 1000;
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_DELAY_REPLY, 0, 2000});
    struct aster_lease *late = start(world, "A", 0);
    fake_clock_advance_ms(world->clock, 1300);
    assert_int_equal(status_of(late), ASTER_LEASE_NOT_GRANTED);
    fake_clock_advance_ms(world->clock, 1700);
    assert_false(lease_world_row(world).held);
    aster_lease_destroy(late);
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_NONE, 0, 0});
    struct aster_lease *next = lease_world_acquire(world, "B");
    assert_non_null(next);
    aster_lease_destroy(next);
}

/* A lost reply is asked for again under the same id: one grant, not two. */
static void a_lost_reply_of_an_acquire_is_repeated_under_its_id_and_grants_once(void **state)
{
    struct lease_world *world = *state;
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_LOSE_REPLY, 0, 0});
    struct aster_lease *a = start(world, "A", 0);
    fake_clock_advance_ms(world->clock, 100);
    assert_int_equal(status_of(a), ASTER_LEASE_ACQUIRING);
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_NONE, 0, 0});
    fake_clock_advance_ms(world->clock, 400);
    assert_int_equal(status_of(a), ASTER_LEASE_HELD);
    assert_int_equal(aster_lease_fence(a)->epoch, 1);
    assert_int_equal(lease_world_report(a).limit_ns - world->began_ns,
                     INT64_C(8995000000)); /* from the FIRST sending */
    aster_lease_destroy(a);
}

static void a_reply_that_stays_lost_is_an_error_and_the_grant_is_found_and_released_later(void **state)
{
    struct lease_world *world = *state;
    world->options.request_timeout_ms = 2000;
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_LOSE_REPLY, 0, 0});
    struct aster_lease *a = start(world, "A", 0);
    fake_clock_advance_ms(world->clock, 2500);
    assert_int_equal(status_of(a), ASTER_LEASE_NOT_GRANTED);
    assert_int_equal(aster_lease_wait_acquired(a, 0, NULL, NULL), ASTER_ERR_INDETERMINATE);
    aster_lease_destroy(a);
    assert_true(lease_world_row(world).held);
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_NONE, 0, 0});
    fake_clock_advance_ms(world->clock, 1000);
    assert_false(lease_world_row(world).held);
}

/* Once an attempt may have been applied, an attempt that was not says nothing about the first one. */
static struct fault lose_the_first_reply_then_be_busy(const struct aster_operation *operation, void *user)
{
    int *acquires = user;
    if (operation->kind != ASTER_OP_ACQUIRE) {
        return (struct fault){FAULT_NONE, 0, 0};
    }
    ++*acquires;
    if (*acquires == 1) {
        return (struct fault){FAULT_LOSE_REPLY, 0, 0};
    }
    return *acquires < 5 ? (struct fault){FAULT_FAIL, ASTER_ERR_BUSY, 0} : (struct fault){FAULT_NONE, 0, 0};
}

static void a_busy_store_after_a_lost_reply_does_not_make_the_acquire_stumble_over_its_own_grant(void **state)
{
    struct lease_world *world = *state;
    int acquires = 0;
    faulty_serializer_script(world->path, lose_the_first_reply_then_be_busy, &acquires);
    struct aster_lease *a = start(world, "A", 0);
    fake_clock_advance_ms(world->clock, 1000);
    assert_int_equal(acquires, 5);
    assert_int_equal(status_of(a), ASTER_LEASE_HELD);
    assert_int_equal(aster_lease_fence(a)->epoch, 1);
    aster_lease_destroy(a);
}

static void a_cancel_between_a_lost_reply_and_a_busy_store_still_frees_the_row(void **state)
{
    struct lease_world *world = *state;
    int acquires = 0;
    faulty_serializer_script(world->path, lose_the_first_reply_then_be_busy, &acquires);
    struct aster_lease *a = start(world, "A", 0);
    aster_lease_cancel(a);
    aster_lease_destroy(a);
    assert_true(lease_world_row(world).held);
    fake_clock_advance_ms(world->clock, 1000);
    assert_false(lease_world_row(world).held);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
}

static void a_cancel_while_a_late_grant_is_being_confirmed_frees_the_row_at_once(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 8000);
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_HANG, 0, 0});
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(status_of(b), ASTER_LEASE_ACQUIRING);
    assert_true(lease_world_row(world).held);
    aster_lease_cancel(b);
    assert_int_equal(status_of(b), ASTER_LEASE_NOT_GRANTED);
    assert_false(lease_world_row(world).held);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

/* The confirmation of a late grant comes too late, and an earlier incarnation has taken the row meanwhile. */
static void taking_over_ones_own_is_still_meant_after_a_late_grant_was_not_confirmed(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    world->options.take_over_own = true;
    struct aster_lease *b = start(world, "B", 60000);
    fake_clock_advance_ms(world->clock, 8000);
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_DELAY_REQUEST, 0, 100});
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    lease_world_revoke(world);
    assert_int_equal(lease_world_grant_to(world, "B"), 5);
    fake_clock_advance_ms(world->clock, 500);
    assert_int_equal(status_of(b), ASTER_LEASE_HELD);
    assert_int_equal(aster_lease_fence(b)->epoch, 6);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

static void hear(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    (void)lease;
    ((int *)user)[status]++;
}

/* Row 77: the first write meets a conflict, and the second loses to B. */
static void a_candidate_that_loses_between_two_attempts_never_hears_that_it_holds(void **state)
{
    struct lease_world *world = *state;
    int heard[8] = {0};
    world->options.on_status = hear;
    world->options.user = heard;
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_FAIL, ASTER_ERR_BUSY, 0});
    struct aster_lease *a = start(world, "A", 1000);
    fake_clock_advance_ms(world->clock, 1);
    assert_int_equal(lease_world_grant_to(world, "B"), 1);
    faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_NONE, 0, 0});
    fake_clock_advance_ms(world->clock, 1000);
    assert_int_equal(status_of(a), ASTER_LEASE_NOT_GRANTED);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_lease_wait_acquired(a, 0, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    aster_reply_fini(&reply);
    assert_int_equal(heard[ASTER_LEASE_HELD], 0);
    assert_int_equal(heard[ASTER_LEASE_NOT_GRANTED], 1);
    aster_lease_destroy(a);
}

/* Row 23: a store that is stalled for a minute, and one that waits for it. */
static void a_waiter_is_granted_within_a_poll_after_a_long_stall(void **state)
{
    struct lease_world *world = *state;
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, (struct fault){FAULT_FAIL, ASTER_ERR_BUSY, 0});
    struct aster_lease *b = start(world, "B", 120000);
    fake_clock_advance_ms(world->clock, 60000);
    assert_int_equal(status_of(b), ASTER_LEASE_ACQUIRING);
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, (struct fault){FAULT_NONE, 0, 0});
    fake_clock_advance_ms(world->clock, 250);
    assert_int_equal(status_of(b), ASTER_LEASE_HELD);
    aster_lease_destroy(b);
}

/* Row 85: whatever an acquire fails with, nothing is left behind. */
static void every_failure_of_an_acquire_leaves_no_handle_behind(void **state)
{
    struct lease_world *world = *state;
    const aster_status failures[] = {ASTER_ERR_INVALID,     ASTER_ERR_NOMEM,       ASTER_ERR_IO,
                                     ASTER_ERR_TIMEOUT,     ASTER_ERR_CLOSED,      ASTER_ERR_LIMIT,
                                     ASTER_ERR_CORRUPT,     ASTER_ERR_BUSY,        ASTER_ERR_COUNTER_EXHAUSTED,
                                     ASTER_ERR_UNREACHABLE, ASTER_ERR_UNSUPPORTED, ASTER_ERR_VERSION};
    for (int round = 0; round < 1000; round++) {
        aster_status failure = failures[(size_t)round % (sizeof failures / sizeof failures[0])];
        faulty_serializer_always(world->path, ASTER_OP_ACQUIRE, (struct fault){FAULT_FAIL, failure, 0});
        struct aster_lease *lease = NULL;
        struct aster_error error = ASTER_ERROR_INIT;
        assert_int_equal(aster_lease_acquire(faulty_serializer_serializer(world->path), aster_text("r"),
                                             aster_text("A"), &world->options, &lease, NULL, &error),
                         failure);
        assert_int_equal(error.status, failure);
        assert_null(lease);
        assert_int_equal(aster_runtime_handles(world->runtime), 0);
    }
    assert_int_equal(lease_world_row(world).epoch, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_poller_is_granted_within_one_poll_after_the_release),
        LEASE_TEST(a_poller_is_granted_at_the_dead_holders_ttl),
        LEASE_TEST_QUEUEING(a_queued_waiter_is_granted_at_once_and_polls_not_at_all),
        LEASE_TEST_QUEUEING(a_queued_grant_is_confirmed_and_its_limit_counts_from_the_confirmation),
        LEASE_TEST_QUEUEING(a_waiter_that_cannot_confirm_in_time_never_holds),
        LEASE_TEST(a_denial_at_the_end_of_the_wait_says_who_holds_it),
        LEASE_TEST_QUEUEING(a_cancelled_waiter_leaves_the_queue_and_is_never_granted),
        LEASE_TEST(a_grant_that_races_with_a_cancel_is_released_and_never_seen),
        LEASE_TEST(an_acquire_that_is_handled_after_its_deadline_takes_nothing),
        LEASE_TEST(a_lost_reply_of_an_acquire_is_repeated_under_its_id_and_grants_once),
        LEASE_TEST(a_reply_that_stays_lost_is_an_error_and_the_grant_is_found_and_released_later),
        LEASE_TEST(a_busy_store_after_a_lost_reply_does_not_make_the_acquire_stumble_over_its_own_grant),
        LEASE_TEST(a_cancel_between_a_lost_reply_and_a_busy_store_still_frees_the_row),
        LEASE_TEST_QUEUEING(a_cancel_while_a_late_grant_is_being_confirmed_frees_the_row_at_once),
        LEASE_TEST_QUEUEING(taking_over_ones_own_is_still_meant_after_a_late_grant_was_not_confirmed),
        LEASE_TEST(a_candidate_that_loses_between_two_attempts_never_hears_that_it_holds),
        LEASE_TEST(a_waiter_is_granted_within_a_poll_after_a_long_stall),
        LEASE_TEST(every_failure_of_an_acquire_leaves_no_handle_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
