/* The memory serializer: limits, authoriser, history, floor and restart over all stripes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>

#include "aster/memory.h"
#include "support/fake_clock.h"
#include "support/requests.h"

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

static void tear_down(struct fixture *fixture)
{
    aster_serializer_destroy(fixture->serializer);
    fake_clock_destroy(fixture->clock);
}

static void resources_max_counts_the_rows_of_all_stripes(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.limits.resources_max = 10;
    struct fixture fixture;
    open_with(&fixture, options);
    char name[16];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "r%d", i);
        acquire_now(fixture.serializer, name, "a");
    }
    struct asked asked;
    ask(fixture.serializer, &asked, op_acquire("r10", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(asked.status, ASTER_ERR_LIMIT);
    assert_non_null(strstr(asked.message, "resources_max is 10"));
    /* Rows that exist are not new ones, and refusals take no place. */
    assert_int_equal(decide_now(fixture.serializer, op_acquire("r3", "b", REQUEST_TTL_MS), NULL),
                     ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(decide_now(fixture.serializer, op_release("r3", "a", 1), NULL), ASTER_REASON_NONE);
    assert_int_equal(acquire_now(fixture.serializer, "r3", "b"), 3);
    assert_int_equal(decide_now(fixture.serializer, op_release("r4", "a", 1), NULL), ASTER_REASON_NONE);
    assert_int_equal(decide_now(fixture.serializer, op_forget("r4", "a"), NULL), ASTER_REASON_NONE);
    assert_int_equal(acquire_now(fixture.serializer, "r10", "a"), 3);
    ask(fixture.serializer, &asked, op_revoke("r11", "operator"), 0);
    assert_int_equal(asked.status, ASTER_ERR_LIMIT);
    tear_down(&fixture);
}

static void forget_raises_the_floor_of_every_stripe(void **state)
{
    (void)state;
    struct fixture fixture;
    open_with(&fixture, (struct aster_memory_options)ASTER_MEMORY_OPTIONS_INIT);
    for (int i = 0; i < 5; i++) {
        int64_t epoch = acquire_now(fixture.serializer, "gone", "a");
        assert_int_equal(decide_now(fixture.serializer, op_release("gone", "a", epoch), NULL), ASTER_REASON_NONE);
    }
    assert_int_equal(decide_now(fixture.serializer, op_forget("gone", "a"), NULL), ASTER_REASON_NONE);
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "new%d", i);
        assert_int_equal(acquire_now(fixture.serializer, name, "a"), 11);
    }
    tear_down(&fixture);
}

static bool allow_only_a(const struct aster_operation *operation, void *user)
{
    (void)user;
    return operation->kind == ASTER_OP_INSPECT || aster_bytes_equal(operation->caller, aster_text("a"));
}

struct events {
    int count;
    struct aster_event last;
    char actor[32];
};

static bool keep_last(const struct aster_event *event, void *user)
{
    struct events *events = user;
    events->count++;
    events->last = *event;
    snprintf(events->actor, sizeof events->actor, "%.*s", (int)event->actor.size, (const char *)event->actor.data);
    return true;
}

static void an_unauthorised_acquire_burns_no_epoch_and_is_audited(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.authorize = allow_only_a;
    struct fixture fixture;
    open_with(&fixture, options);
    int64_t epoch = -1;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(decide_now(fixture.serializer, op_acquire("r", "mallory", REQUEST_TTL_MS), &epoch),
                         ASTER_REASON_UNAUTHORIZED);
        assert_int_equal(epoch, 0);
    }
    struct events events = {0};
    assert_int_equal(aster_history(fixture.serializer, NULL, keep_last, &events, NULL), ASTER_OK);
    assert_int_equal(events.count, 100);
    assert_int_equal(events.last.kind, ASTER_EVENT_UNAUTHORIZED);
    assert_string_equal(events.actor, "mallory");
    assert_int_equal(acquire_now(fixture.serializer, "r", "a"), 1);
    assert_int_equal(decide_now(fixture.serializer, op_revoke("r", "mallory"), NULL), ASTER_REASON_UNAUTHORIZED);
    assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", 1), NULL), ASTER_REASON_NONE);
    tear_down(&fixture);
}

static void the_history_is_bounded_and_the_oldest_go_first(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.history_max = 5;
    struct fixture fixture;
    open_with(&fixture, options);
    for (int i = 0; i < 10; i++) {
        int64_t epoch = acquire_now(fixture.serializer, "r", "a");
        decide_now(fixture.serializer, op_release("r", "a", epoch), NULL);
    }
    struct events events = {0};
    assert_int_equal(aster_history(fixture.serializer, NULL, keep_last, &events, NULL), ASTER_OK);
    assert_int_equal(events.count, 5);
    assert_int_equal(events.last.revision, 20);
    assert_int_equal(events.last.epoch, 20);
    tear_down(&fixture);
}

static void epochs_survive_a_restart_and_nobody_else_is_granted_for_a_full_ttl(void **state)
{
    (void)state;
    struct fixture fixture;
    open_with(&fixture, (struct aster_memory_options)ASTER_MEMORY_OPTIONS_INIT);
    acquire_now(fixture.serializer, "r", "a");
    for (int i = 0; i < 5; i++) {
        fake_clock_advance_ms(fixture.clock, 4000);
        assert_int_equal(aster_memory_restart(fixture.serializer, NULL), ASTER_OK);
    }
    fake_clock_advance_ms(fixture.clock, 9999);
    int64_t epoch = 0;
    assert_int_equal(decide_now(fixture.serializer, op_acquire("r", "b", REQUEST_TTL_MS), &epoch),
                     ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(epoch, 1);
    fake_clock_advance_ms(fixture.clock, 1);
    assert_int_equal(acquire_now(fixture.serializer, "r", "b"), 2);
    tear_down(&fixture);
}

static void remaining_is_within_the_ttl_after_each_of_10000_renewals(void **state)
{
    (void)state;
    struct fixture fixture;
    open_with(&fixture, (struct aster_memory_options)ASTER_MEMORY_OPTIONS_INIT);
    int64_t epoch = acquire_now(fixture.serializer, "r", "a");
    for (int i = 0; i < 10000; i++) {
        fake_clock_advance_ns(fixture.clock, 333);
        struct asked asked;
        ask(fixture.serializer, &asked, op_renew("r", "a", epoch), 0);
        assert_true(asked_granted(&asked));
        assert_int_equal(asked.reply.decision.snapshot.remaining_ns, INT64_C(10000000000));
        assert_int_equal(asked.reply.decision.snapshot.lease_revision, i + 1);
        asked_fini(&asked);
    }
    tear_down(&fixture);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.stripes = 0;
    assert_int_equal(aster_memory_open(&options, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "stripes is 0"));
    options.stripes = 4097;
    assert_int_equal(aster_memory_open(&options, &serializer, &error), ASTER_ERR_INVALID);
    assert_null(serializer);
}

static void options_of_an_older_caller_get_defaults_for_what_they_lack(void **state)
{
    (void)state;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.struct_size = offsetof(struct aster_memory_options, stripes);
    options.stripes = 0; /* not looked at */
    struct aster_serializer *serializer = NULL;
    assert_int_equal(aster_memory_open(&options, &serializer, NULL), ASTER_OK);
    assert_int_equal(acquire_now(serializer, "r", "a"), 1);
    aster_serializer_destroy(serializer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resources_max_counts_the_rows_of_all_stripes),
        cmocka_unit_test(forget_raises_the_floor_of_every_stripe),
        cmocka_unit_test(an_unauthorised_acquire_burns_no_epoch_and_is_audited),
        cmocka_unit_test(the_history_is_bounded_and_the_oldest_go_first),
        cmocka_unit_test(epochs_survive_a_restart_and_nobody_else_is_granted_for_a_full_ttl),
        cmocka_unit_test(remaining_is_within_the_ttl_after_each_of_10000_renewals),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(options_of_an_older_caller_get_defaults_for_what_they_lack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
