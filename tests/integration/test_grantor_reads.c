/* List, history and watch of a real asterd. */
#include <signal.h>
#include <stdio.h>

#include "support/grantor_world.h"
#include "support/unit.h"

#define TTL_MS 40000

static struct grantor_world world;
static const char *journal = "sqlite";

static int open_world(void **state)
{
    (void)state;
    grantor_world_init(&world, journal);
    grantor_world_configure(&world, "", "");
    grantor_world_start(&world);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_world_fini(&world);
    return 0;
}

static void a_list_is_continued_after_its_last_name(void **state)
{
    (void)state;
    char name[32];
    char last[32] = "";
    size_t seen = 0;
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "shard-%02d", i);
        grantor_world_take(&world.a, name, TTL_MS);
    }
    grantor_world_take(&world.a, "zone", TTL_MS);
    bool more = true;
    while (more) {
        struct aster_call list = {.kind = ASTER_CALL_LIST};
        list.list.prefix = aster_text("shard-");
        list.list.after = aster_text(last);
        list.list.limit = 7;
        const struct aster_answer *answer = grantor_client_await(&world.b, grantor_client_send(&world.b, &list));
        assert_int_equal(answer->kind, ASTER_ANSWER_ROWS);
        assert_in_range(answer->rows.count, 1, 7);
        for (size_t i = 0; i < answer->rows.count; i++) {
            snprintf(name, sizeof name, "shard-%02d", (int)seen++);
            assert_true(aster_bytes_equal(answer->rows.rows[i].resource, aster_text(name)));
        }
        snprintf(last, sizeof last, "%s", name);
        more = answer->rows.more;
    }
    assert_int_equal(seen, 30);
}

static void history_tells_the_newest_of_a_resource(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
        grantor_world_take(&world.b, i == 0 ? "x" : i == 1 ? "y" : "z", TTL_MS);
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch));
    }
    struct aster_call history = {.kind = ASTER_CALL_HISTORY};
    history.events.resource = aster_text("catalog");
    history.events.limit = 3;
    const struct aster_answer *answer = grantor_client_await(&world.b, grantor_client_send(&world.b, &history));
    assert_int_equal(answer->kind, ASTER_ANSWER_EVENTS);
    assert_false(answer->events.more);
    assert_int_equal(answer->events.count, 3);
    assert_int_equal(answer->events.events[0].kind, ASTER_EVENT_RELEASED);
    assert_int_equal(answer->events.events[1].kind, ASTER_EVENT_GRANTED);
    assert_int_equal(answer->events.events[2].kind, ASTER_EVENT_RELEASED);
    assert_true(aster_bytes_equal(answer->events.events[2].actor, world.a.identity));
}

/* Read the watch until it has told `count` events; each must be newer than the last. */
static void expect_events(struct grantor_client *client, uint64_t id, size_t count, int64_t *revision)
{
    size_t seen = 0;
    while (seen < count) {
        const struct aster_answer *answer = grantor_client_await(client, id);
        assert_int_equal(answer->kind, ASTER_ANSWER_EVENTS);
        assert_true(answer->events.more);
        assert_false(answer->events.lost);
        for (size_t i = 0; i < answer->events.count; i++) {
            assert_true(answer->events.events[i].revision > *revision);
            *revision = answer->events.events[i].revision;
        }
        seen += answer->events.count;
    }
    assert_int_equal(seen, count);
}

static void a_watch_misses_nothing_between_the_past_and_the_present(void **state)
{
    (void)state;
    int64_t revision = 0;
    grantor_world_take(&world.a, "before", TTL_MS);
    struct aster_call watch = {.kind = ASTER_CALL_WATCH};
    uint64_t id = grantor_client_send(&world.b, &watch);
    for (int i = 0; i < 50; i++) {
        int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch));
    }
    expect_events(&world.b, id, 101, &revision);
}

static void a_watch_of_one_resource_tells_only_that_and_its_expiry(void **state)
{
    (void)state;
    struct aster_call watch = {.kind = ASTER_CALL_WATCH};
    watch.events.resource = aster_text("catalog");
    uint64_t id = grantor_client_send(&world.b, &watch);
    const struct aster_answer *first = grantor_client_await(&world.b, id); /* at once, though empty */
    assert_int_equal(first->events.count, 0);
    grantor_world_take(&world.a, "other", TTL_MS);
    grantor_world_take(&world.a, "catalog", 200);
    uint64_t waiting = grantor_client_acquire(&world.op, "catalog", TTL_MS, 10000);
    assert_granted(grantor_client_decision(&world.op, waiting));
    int64_t revision = 0;
    expect_events(&world.b, id, 2, &revision); /* the grant and the takeover */
}

/* The server keeps about a megabyte for a watch that does not read, and forgets what comes then. */
static void a_slow_watcher_is_told_that_it_lost_events_and_delays_nobody(void **state)
{
    (void)state;
    static uint64_t ids[4000];
    char name[500];
    struct aster_call watch = {.kind = ASTER_CALL_WATCH};
    uint64_t id = grantor_client_send(&world.b, &watch);
    grantor_client_await(&world.b, id);
    grantor_client_throttle(&world.b, true);
    memset(name, 'x', sizeof name);
    for (int i = 0; i < 4000; i++) {
        snprintf(name + 480, sizeof name - 480, "%d", i);
        ids[i] = grantor_client_acquire(&world.a, name, TTL_MS, 0);
        if (i >= 500) {
            assert_granted(grantor_client_decision(&world.a, ids[i - 500]));
        }
    }
    for (int i = 3500; i < 4000; i++) {
        assert_granted(grantor_client_decision(&world.a, ids[i]));
    }
    snprintf(name + 480, sizeof name - 480, "%d", 3999);
    grantor_process_await_log(&world.server, name, "event=granted"); /* the history has been followed to its end */
    grantor_client_throttle(&world.b, false);
    size_t seen = 0;
    bool lost = false;
    while (!lost) {
        const struct aster_answer *answer = grantor_client_await(&world.b, id);
        seen += answer->events.count;
        lost = answer->events.lost;
    }
    assert_in_range(seen, 1, 3999);
    grantor_world_take(&world.b, "still served", TTL_MS);
}

static void a_cancelled_watch_ends_with_an_answer(void **state)
{
    (void)state;
    struct aster_call watch = {.kind = ASTER_CALL_WATCH};
    uint64_t id = grantor_client_send(&world.b, &watch);
    grantor_client_await(&world.b, id);
    struct aster_call cancel = {.kind = ASTER_CALL_CANCEL, .cancel_id = id};
    grantor_client_send(&world.b, &cancel);
    const struct aster_answer *answer = grantor_client_await(&world.b, id);
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_CANCELLED);
    grantor_world_take(&world.b, "catalog", TTL_MS);
}

static void reading_can_be_bound_to_a_role(void **state)
{
    (void)state;
    grantor_world_configure(&world, "", "requires { history = \"auditor\" watch = \"auditor\" }\n");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    struct aster_call history = {.kind = ASTER_CALL_HISTORY};
    const struct aster_answer *answer = grantor_client_await(&world.b, grantor_client_send(&world.b, &history));
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_REFUSED);
    grantor_process_await_log(&world.server, "event=unauthorized verb=history", world.b.id);
}

static void expect_refused(struct grantor_client *client, uint64_t id)
{
    const struct aster_answer *answer = grantor_client_await(client, id);
    while (answer->kind == ASTER_ANSWER_EVENTS) { /* what came before */
        answer = grantor_client_await(client, id);
    }
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_REFUSED);
}

static void a_watch_ends_when_its_role_or_prefix_is_withdrawn(void **state)
{
    (void)state;
    struct aster_call all = {.kind = ASTER_CALL_WATCH};
    struct aster_call one = {.kind = ASTER_CALL_WATCH};
    one.events.resource = aster_text("catalog");
    uint64_t watch_all = grantor_client_send(&world.b, &all);
    grantor_client_await(&world.b, watch_all);
    uint64_t watch_one = grantor_client_send(&world.b, &one);
    grantor_client_await(&world.b, watch_one);
    grantor_world_configure(&world, "resources = {\"invoice/\"}", "");
    grantor_process_signal(&world.server, SIGHUP);
    expect_refused(&world.b, watch_one);
    grantor_world_take(&world.a, "invoice/1", TTL_MS);
    int64_t revision = 0;
    expect_events(&world.b, watch_all, 1, &revision); /* of what it still may see */
    grantor_world_configure(&world, "", "requires { watch = \"auditor\" }\n");
    grantor_process_signal(&world.server, SIGHUP);
    expect_refused(&world.b, watch_all);
    grantor_world_take(&world.b, "catalog", TTL_MS); /* the link lives on */
}

static void a_clean_stop_logs_the_last_decisions(void **state)
{
    (void)state;
    char name[32];
    struct grantor_client *client = &world.a;
    grantor_world_take(client, "held", TTL_MS);
    uint64_t waiting = grantor_client_acquire(&world.b, "held", TTL_MS, TTL_MS);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "last-%d", i);
        grantor_world_take(client, name, TTL_MS);
    }
    assert_int_equal(grantor_process_end(&world.server, SIGTERM), 0);
    const struct aster_answer *answer = grantor_client_await(&world.b, waiting);
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_CLOSED);
    assert_int_equal(grantor_process_count_log(&world.server, "event=granted"), 41);
    assert_int_equal(grantor_process_count_log(&world.server, "level=error"), 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_list_is_continued_after_its_last_name),
        EACH(history_tells_the_newest_of_a_resource),
        EACH(a_watch_misses_nothing_between_the_past_and_the_present),
        EACH(a_watch_of_one_resource_tells_only_that_and_its_expiry),
        EACH(a_slow_watcher_is_told_that_it_lost_events_and_delays_nobody),
        EACH(a_cancelled_watch_ends_with_an_answer),
        EACH(reading_can_be_bound_to_a_role),
        EACH(a_clean_stop_logs_the_last_decisions),
        EACH(a_watch_ends_when_its_role_or_prefix_is_withdrawn),
    };
    int failed = cmocka_run_group_tests_name("journal", tests, NULL, NULL);
    journal = NULL;
    return failed + cmocka_run_group_tests_name("shared file", tests, NULL, NULL);
}
