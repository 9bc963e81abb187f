/* Waiting on the memory serializer: first in, first out, one grant at a time, never from a stale place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/memory.h"
#include "support/fake_clock.h"
#include "support/requests.h"
#include "support/seed.h"

struct fixture {
    struct fake_clock *clock;
    struct aster_serializer *serializer;
};

static void open_with(struct fixture *fixture, struct aster_memory_options options)
{
    fixture->clock = fake_clock_create();
    options.clock = fake_clock_clock(fixture->clock);
    assert_int_equal(aster_memory_open(&options, &fixture->serializer, NULL), ASTER_OK);
}

static void set_up(struct fixture *fixture)
{
    open_with(fixture, (struct aster_memory_options)ASTER_MEMORY_OPTIONS_INIT);
}

static void tear_down(struct fixture *fixture)
{
    aster_serializer_destroy(fixture->serializer);
    fake_clock_destroy(fixture->clock);
}

static void waiters_are_granted_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = acquire_now(fixture.serializer, "r", "a");
    struct asked waiters[3];
    static const char *const names[] = {"b", "c", "d"};
    for (size_t i = 0; i < 3; i++) {
        ask(fixture.serializer, &waiters[i], op_acquire("r", names[i], REQUEST_TTL_MS), 60000);
        assert_int_equal(waiters[i].answers, 0);
    }
    const char *holder = "a";
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(decide_now(fixture.serializer, op_release("r", holder, epoch), NULL), ASTER_REASON_NONE);
        assert_true(asked_granted(&waiters[i]));
        assert_int_equal(waiters[i].reply.decision.epoch, epoch + 2);
        if (i < 2) {
            assert_int_equal(waiters[i + 1].answers, 0);
        }
        epoch += 2;
        holder = names[i];
    }
    for (size_t i = 0; i < 3; i++) {
        asked_fini(&waiters[i]);
    }
    tear_down(&fixture);
}

static const char *withdrawn; /* whom the authorizer refuses by now */

static bool allow_all_but_withdrawn(const struct aster_operation *operation, void *user)
{
    (void)user;
    return withdrawn == NULL || !aster_bytes_equal(operation->caller, aster_text(withdrawn));
}

static void a_waiter_that_is_no_longer_allowed_is_denied_at_its_turn_and_the_next_is_granted(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.authorize = allow_all_but_withdrawn;
    withdrawn = NULL;
    for (int by_expiry = 0; by_expiry < 2; by_expiry++) {
        struct fixture fixture;
        struct asked denied;
        struct asked next;
        open_with(&fixture, options);
        int64_t epoch = acquire_now(fixture.serializer, "r", "a");
        ask(fixture.serializer, &denied, op_acquire("r", "b", REQUEST_TTL_MS), 10 * REQUEST_TTL_MS);
        ask(fixture.serializer, &next, op_acquire("r", "c", REQUEST_TTL_MS), 10 * REQUEST_TTL_MS);
        withdrawn = "b";
        if (by_expiry != 0) {
            fake_clock_advance_ms(fixture.clock, REQUEST_TTL_MS + 1);
        } else {
            assert_int_equal(decide_now(fixture.serializer, op_release("r", "a", epoch), NULL), ASTER_REASON_NONE);
        }
        assert_int_equal(denied.answers, 1);
        assert_int_equal(denied.status, ASTER_OK);
        assert_int_equal(denied.reply.decision.reason, ASTER_REASON_UNAUTHORIZED);
        assert_true(asked_granted(&next));
        asked_fini(&denied);
        asked_fini(&next);
        tear_down(&fixture);
        withdrawn = NULL;
    }
}

static void of_1000_waiters_one_release_grants_exactly_one_and_wakes_nobody_else(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = acquire_now(fixture.serializer, "r", "a");
    struct asked *waiters = calloc(1000, sizeof *waiters);
    for (size_t i = 0; i < 1000; i++) {
        ask(fixture.serializer, &waiters[i], op_acquire("r", "w", REQUEST_TTL_MS), 60000);
    }
    assert_int_equal(decide_now(fixture.serializer, op_release("r", "a", epoch), NULL), ASTER_REASON_NONE);
    int answers = 0;
    for (size_t i = 0; i < 1000; i++) {
        answers += waiters[i].answers;
    }
    assert_int_equal(answers, 1);
    assert_true(asked_granted(&waiters[0]));
    aster_serializer_close(fixture.serializer);
    for (size_t i = 1; i < 1000; i++) {
        assert_int_equal(waiters[i].answers, 1);
        assert_int_equal(waiters[i].status, ASTER_ERR_CLOSED);
    }
    asked_fini(&waiters[0]);
    free(waiters);
    tear_down(&fixture);
}

static void the_first_waiter_takes_over_at_the_instant_of_expiry(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    fake_clock_advance_ns(fixture.clock, INT64_C(9999999999));
    assert_int_equal(waiter.answers, 0);
    fake_clock_advance_ns(fixture.clock, 1);
    assert_true(asked_granted(&waiter));
    assert_true(waiter.reply.decision.takeover);
    assert_int_equal(waiter.reply.decision.epoch, 2);
    assert_int_equal(waiter.reply.decision.snapshot.remaining_ns, INT64_C(10000000000));
    asked_fini(&waiter);
    tear_down(&fixture);
}

static void renewals_of_the_holder_keep_waiters_waiting(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 1000000);
    for (int i = 0; i < 30; i++) {
        fake_clock_advance_ms(fixture.clock, 3000);
        assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_NONE);
        assert_int_equal(waiter.answers, 0);
    }
    fake_clock_advance_ms(fixture.clock, 10000);
    assert_true(asked_granted(&waiter));
    asked_fini(&waiter);
    tear_down(&fixture);
}

static void a_wait_that_ends_while_another_holds_is_denied_with_the_holder(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 4000);
    fake_clock_advance_ms(fixture.clock, 3999);
    assert_int_equal(waiter.answers, 0);
    fake_clock_advance_ms(fixture.clock, 1);
    assert_int_equal(waiter.answers, 1);
    assert_int_equal(waiter.status, ASTER_OK);
    assert_int_equal(waiter.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_true(aster_bytes_equal(waiter.reply.decision.snapshot.holder, aster_text("a")));
    asked_fini(&waiter);
    tear_down(&fixture);
}

static void a_dead_waiter_at_the_head_is_skipped(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = acquire_now(fixture.serializer, "r", "a");
    struct asked dead;
    struct asked alive;
    ask(fixture.serializer, &dead, op_acquire("r", "b", REQUEST_TTL_MS), 5000);
    ask(fixture.serializer, &alive, op_acquire("r", "c", REQUEST_TTL_MS), 60000);
    aster_serializer_cancel(fixture.serializer, &dead.request);
    assert_int_equal(dead.status, ASTER_ERR_CANCELLED);
    assert_int_equal(decide_now(fixture.serializer, op_release("r", "a", epoch), NULL), ASTER_REASON_NONE);
    assert_true(asked_granted(&alive));
    assert_int_equal(dead.answers, 1);
    asked_fini(&alive);
    tear_down(&fixture);
}

static void a_waiter_whose_time_passed_in_a_leap_is_never_granted_from_its_stale_place(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked stale;
    struct asked alive;
    ask(fixture.serializer, &stale, op_acquire("r", "b", REQUEST_TTL_MS), 5000);
    ask(fixture.serializer, &alive, op_acquire("r", "c", REQUEST_TTL_MS), 60000);
    fake_clock_leap_ms(fixture.clock, 20000);
    assert_int_equal(stale.answers, 1);
    assert_int_equal(stale.status, ASTER_ERR_TIMEOUT);
    assert_true(asked_granted(&alive));
    assert_int_equal(alive.reply.decision.epoch, 2);
    assert_int_equal(alive.reply.decision.snapshot.remaining_ns, INT64_C(10000000000));
    asked_fini(&alive);
    tear_down(&fixture);
}

static void a_request_deadline_ends_the_wait_with_timeout(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter = {.request = ASTER_REQUEST_INIT};
    struct asked probe;
    ask(fixture.serializer, &probe, op_inspect("r"), 0); /* borrow its completion */
    waiter.request.operation = op_acquire("r", "b", REQUEST_TTL_MS);
    waiter.request.complete = probe.request.complete;
    waiter.request.user = &waiter;
    waiter.request.wait_until_ns = fake_clock_now_ns(fixture.clock) + INT64_C(8000000000);
    waiter.request.deadline_ns = fake_clock_now_ns(fixture.clock) + INT64_C(2000000000);
    aster_serializer_submit(fixture.serializer, &waiter.request);
    fake_clock_advance_ms(fixture.clock, 2000);
    assert_int_equal(waiter.answers, 1);
    assert_int_equal(waiter.status, ASTER_ERR_TIMEOUT);
    asked_fini(&probe);
    tear_down(&fixture);
}

static void a_newcomer_does_not_overtake_those_who_wait(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    struct asked newcomer;
    fake_clock_advance_ms(fixture.clock, 10000);
    ask(fixture.serializer, &newcomer, op_acquire("r", "n", REQUEST_TTL_MS), 0);
    assert_true(asked_granted(&waiter));
    assert_int_equal(newcomer.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    asked_fini(&newcomer);
    asked_fini(&waiter);
    tear_down(&fixture);
}

static void the_limits_of_waiters_are_errors_that_name_the_limit(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.limits.waiters_per_resource_max = 2;
    options.limits.waiters_total_max = 3;
    struct fixture fixture;
    open_with(&fixture, options);
    acquire_now(fixture.serializer, "r", "a");
    acquire_now(fixture.serializer, "s", "a");
    struct asked asked[5];
    static const char *const resources[] = {"r", "r", "r", "s", "s"};
    for (size_t i = 0; i < 5; i++) {
        ask(fixture.serializer, &asked[i], op_acquire(resources[i], "w", REQUEST_TTL_MS), 5000);
    }
    assert_int_equal(asked[2].status, ASTER_ERR_LIMIT);
    assert_non_null(strstr(asked[2].message, "waiters_per_resource_max is 2"));
    assert_int_equal(asked[4].status, ASTER_ERR_LIMIT);
    assert_non_null(strstr(asked[4].message, "waiters_total_max is 3"));
    fake_clock_advance_ms(fixture.clock, 5000); /* all give up: room again */
    ask(fixture.serializer, &asked[2], op_acquire("r", "w", REQUEST_TTL_MS), 5000);
    assert_int_equal(asked[2].answers, 0);
    aster_serializer_close(fixture.serializer);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(asked[i].answers, 1);
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void a_cancelled_waiter_is_never_granted_at_10000_random_points(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    uint32_t seed = (uint32_t)test_seed(7);
    for (int round = 0; round < 10000; round++) {
        int64_t epoch = acquire_now(fixture.serializer, "r", "a");
        struct asked waiter;
        ask(fixture.serializer, &waiter, op_acquire("r", "b", 1000), 12000);
        fake_clock_advance_ms(fixture.clock, next_random(&seed) % 13000);
        bool by_release = next_random(&seed) % 2 == 0;
        if (by_release) {
            decide_now(fixture.serializer, op_release("r", "a", epoch), NULL);
        }
        bool before = waiter.answers == 1;
        bool granted_before = asked_granted(&waiter);
        aster_serializer_cancel(fixture.serializer, &waiter.request);
        assert_int_equal(waiter.answers, 1);
        assert_true(before || waiter.status == ASTER_ERR_CANCELLED);
        assert_true(asked_granted(&waiter) == granted_before);
        asked_fini(&waiter);
        decide_now(fixture.serializer, op_revoke("r", "operator"), NULL);
    }
    tear_down(&fixture);
}

static void waiters_survive_a_revoke_and_one_of_them_is_granted(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    assert_int_equal(decide_now(fixture.serializer, op_revoke("r", "operator"), NULL), ASTER_REASON_NONE);
    assert_true(asked_granted(&waiter));
    assert_int_equal(waiter.reply.decision.epoch, 3);
    asked_fini(&waiter);
    tear_down(&fixture);
}

static void a_restart_answers_waiters_and_re_arms_the_holder(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    acquire_now(fixture.serializer, "r", "a");
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    fake_clock_advance_ms(fixture.clock, 9000);
    assert_int_equal(aster_memory_restart(fixture.serializer, NULL), ASTER_OK);
    assert_int_equal(waiter.status, ASTER_ERR_CLOSED);
    fake_clock_advance_ms(fixture.clock, 9999);
    int64_t epoch = 0;
    assert_int_equal(decide_now(fixture.serializer, op_acquire("r", "b", REQUEST_TTL_MS), &epoch),
                     ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(epoch, 1);
    fake_clock_advance_ms(fixture.clock, 1);
    assert_int_equal(acquire_now(fixture.serializer, "r", "b"), 2);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_are_granted_in_the_order_in_which_they_came),
        cmocka_unit_test(a_waiter_that_is_no_longer_allowed_is_denied_at_its_turn_and_the_next_is_granted),
        cmocka_unit_test(of_1000_waiters_one_release_grants_exactly_one_and_wakes_nobody_else),
        cmocka_unit_test(the_first_waiter_takes_over_at_the_instant_of_expiry),
        cmocka_unit_test(renewals_of_the_holder_keep_waiters_waiting),
        cmocka_unit_test(a_wait_that_ends_while_another_holds_is_denied_with_the_holder),
        cmocka_unit_test(a_dead_waiter_at_the_head_is_skipped),
        cmocka_unit_test(a_waiter_whose_time_passed_in_a_leap_is_never_granted_from_its_stale_place),
        cmocka_unit_test(a_request_deadline_ends_the_wait_with_timeout),
        cmocka_unit_test(a_newcomer_does_not_overtake_those_who_wait),
        cmocka_unit_test(the_limits_of_waiters_are_errors_that_name_the_limit),
        cmocka_unit_test(a_cancelled_waiter_is_never_granted_at_10000_random_points),
        cmocka_unit_test(waiters_survive_a_revoke_and_one_of_them_is_granted),
        cmocka_unit_test(a_restart_answers_waiters_and_re_arms_the_holder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
