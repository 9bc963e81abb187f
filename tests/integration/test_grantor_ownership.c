/* A real asterd and its clients: who owns, who waits, who is refused. Each test over the store in memory, whose
 * serializer queues waiters, and over SQLite, where the server does. */
#include <signal.h>
#include <stdio.h>

#include "support/grantor_world.h"
#include "support/unit.h"

#define TTL_MS 60000
#define WAIT_MS 20000

static struct grantor_world world;
static const char *journal = "sqlite";

static int open_world(void **state)
{
    (void)state;
    grantor_world_init(&world, journal);
    grantor_world_configure(&world, "", "http = \"127.0.0.1:0\"\n");
    grantor_world_start(&world);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_world_fini(&world);
    return 0;
}

/* Everything that was sent before on this connection has been handled when this is answered. */
static void settle(struct grantor_client *client)
{
    grantor_client_decision(client, grantor_client_operate(client, ASTER_OP_INSPECT, "settle", 0));
}

static void nobody_renews_releases_or_writes_under_anothers_lease(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    assert_denied(grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_RENEW, "catalog", epoch)),
                  "NOT_HOLDER");
    assert_denied(
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_RELEASE, "catalog", epoch)),
        "NOT_HOLDER");
    struct aster_call put = {.kind = ASTER_CALL_OPERATION};
    put.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    put.one.operation.kind = ASTER_OP_PUT;
    put.one.operation.resource = aster_text("catalog");
    put.one.operation.epoch = epoch;
    put.one.operation.holder = world.a.identity; /* the fence is a's, the writer is b */
    put.one.operation.value = aster_text("stolen");
    assert_denied(grantor_client_decision(&world.b, grantor_client_send(&world.b, &put)), "NOT_HOLDER");
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)));
    assert_granted(grantor_client_decision(&world.a, grantor_client_send(&world.a, &put)));
    grantor_process_await_log(&world.server, "event=fence-rejected", "level=warning");
    assert_int_equal(grantor_process_count_log(&world.server, "stolen"), 0);
}

static void the_holder_is_whom_the_handshake_authenticated(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog", TTL_MS);
    const struct aster_decision *denied =
        grantor_client_decision(&world.b, grantor_client_acquire(&world.b, "catalog", TTL_MS, 0));
    assert_denied(denied, "HELD_BY_OTHER");
    assert_true(aster_bytes_equal(denied->snapshot.holder, world.a.identity));
    grantor_process_await_log(&world.server, "event=granted", world.a.id);
}

static void revoke_needs_the_operator_role(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    const struct aster_decision *denied =
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_REVOKE, "catalog", 0));
    assert_denied(denied, "UNAUTHORIZED");
    assert_int_equal(denied->snapshot.holder.size, 0); /* it learns nothing about the row */
    assert_int_equal(denied->epoch, 0);
    assert_granted(
        grantor_client_decision(&world.op, grantor_client_operate(&world.op, ASTER_OP_REVOKE, "catalog", 0)));
    assert_denied(grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)),
                  "NOT_HELD");
    grantor_process_await_log(&world.server, "event=unauthorized", world.b.id);
    grantor_process_await_log(&world.server, "event=revoked", world.op.id);
}

static void refusals_do_not_flood_the_history(void **state)
{
    (void)state;
    uint64_t ids[100];
    for (int i = 0; i < 100; i++) {
        ids[i] = grantor_client_operate(&world.b, ASTER_OP_REVOKE, "catalog", 0);
    }
    for (int i = 0; i < 100; i++) {
        assert_denied(grantor_client_decision(&world.b, ids[i]), "UNAUTHORIZED");
    }
    grantor_world_take(&world.a, "after", TTL_MS);
    grantor_process_await_log(&world.server, "event=granted", "after");
    size_t lines = grantor_process_count_log(&world.server, "event=unauthorized");
    assert_in_range(lines, 10, 40); /* ten at once and one a second */
}

static void refused_renewals_of_one_message_do_not_flood_the_history(void **state)
{
    (void)state;
    static struct aster_operation operations[500];
    static char names[500][16];
    grantor_world_configure(&world, "resources = {\"invoice/\"}", "");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    for (int i = 0; i < 500; i++) {
        snprintf(names[i], sizeof names[i], "catalog/%d", i);
        operations[i] = (struct aster_operation)ASTER_OPERATION_INIT;
        operations[i].kind = ASTER_OP_RENEW;
        operations[i].resource = aster_text(names[i]);
        operations[i].epoch = 1;
    }
    struct aster_call call = {.kind = ASTER_CALL_RENEW_MANY};
    call.many.operations = operations;
    call.many.count = 500;
    const struct aster_answer *answer = grantor_client_await(&world.b, grantor_client_send(&world.b, &call));
    assert_int_equal(answer->kind, ASTER_ANSWER_RENEWED_MANY);
    assert_int_equal(answer->renewed.count, 500);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(answer->renewed.results[i].status, ASTER_OK);
        assert_denied(&answer->renewed.results[i].decision, "UNAUTHORIZED");
    }
    grantor_world_take(&world.a, "after", TTL_MS);
    grantor_process_await_log(&world.server, "event=granted", "after");
    size_t lines = grantor_process_count_log(&world.server, "event=unauthorized");
    assert_in_range(lines, 10, 40); /* ten at once and one a second */
}

static void waiters_are_granted_in_the_order_of_their_arrival(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    uint64_t first = grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    settle(&world.b);
    uint64_t second = grantor_client_acquire(&world.op, "catalog", TTL_MS, WAIT_MS);
    settle(&world.op);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch)));
    const struct aster_decision *granted = grantor_client_decision(&world.b, first);
    assert_granted(granted);
    int64_t epoch_b = granted->epoch;
    assert_false(grantor_client_has(&world.op, second));
    assert_granted(
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_RELEASE, "catalog", epoch_b)));
    granted = grantor_client_decision(&world.op, second);
    assert_granted(granted);
    assert_true(granted->epoch > epoch_b);
}

static void a_waiter_takes_over_when_the_lease_expires(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog", 300);
    uint64_t waiting = grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    assert_granted(grantor_client_decision(&world.b, waiting));
}

static void waiting_ends_with_a_denial_when_its_time_is_over(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog", TTL_MS);
    uint64_t waiting = grantor_client_acquire(&world.b, "catalog", TTL_MS, 200);
    assert_denied(grantor_client_decision(&world.b, waiting), "HELD_BY_OTHER");
}

static void a_cancelled_waiter_is_told_so_and_skipped(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    uint64_t waiting = grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    struct aster_call cancel = {.kind = ASTER_CALL_CANCEL, .cancel_id = waiting};
    settle(&world.b);
    grantor_client_send(&world.b, &cancel);
    const struct aster_answer *answer = grantor_client_await(&world.b, waiting);
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_CANCELLED);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch)));
    grantor_world_take(&world.op, "catalog", TTL_MS);
}

static void a_waiter_that_disconnects_is_skipped(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    settle(&world.b);
    grantor_client_close(&world.b);
    grantor_world_await_connections(&world, 2); /* until then it might be granted to b, and rightly */
    uint64_t waiting = grantor_client_acquire(&world.op, "catalog", TTL_MS, WAIT_MS);
    settle(&world.op);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch)));
    assert_granted(grantor_client_decision(&world.op, waiting)); /* far sooner than b's ttl would have ended */
}

/* Whether the server sees the request and the end together or one after the other: b's ttl would be a minute. */
static void an_acquire_whose_client_left_blocks_nobody(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    struct aster_call waiting = grantor_call_acquire("catalog", TTL_MS, WAIT_MS);
    grantor_client_send_and_close(&world.b, &waiting);
    grantor_world_await_connections(&world, 2);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch)));
    assert_granted(grantor_client_decision(&world.op, grantor_client_acquire(&world.op, "catalog", TTL_MS, WAIT_MS)));
}

static void a_lost_reply_is_repeated_under_the_same_id_without_a_second_effect(void **state)
{
    (void)state;
    struct aster_call acquire = grantor_call_acquire("catalog", TTL_MS, 0);
    const struct aster_decision *granted = grantor_client_decision(&world.a, grantor_client_send(&world.a, &acquire));
    assert_granted(granted);
    int64_t epoch = granted->epoch;
    grantor_client_close(&world.a);
    grantor_client_connect(&world.a, world.server.tcp, true);
    const struct aster_decision *again = grantor_client_decision(&world.a, grantor_client_send(&world.a, &acquire));
    assert_granted(again);
    assert_true(again->replayed);
    assert_int_equal(again->epoch, epoch);
}

static void many_renewals_are_answered_in_one_message(void **state)
{
    (void)state;
    static char names[100][16];
    static struct aster_operation operations[100];
    int64_t foreign = grantor_world_take(&world.b, "foreign", TTL_MS);
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "shard-%d", i);
        operations[i] = (struct aster_operation)ASTER_OPERATION_INIT;
        operations[i].kind = ASTER_OP_RENEW;
        operations[i].resource = aster_text(i == 50 ? "foreign" : names[i]);
        operations[i].epoch = i == 50 ? foreign : grantor_world_take(&world.a, names[i], TTL_MS);
    }
    struct aster_call call = {.kind = ASTER_CALL_RENEW_MANY};
    call.many.operations = operations;
    call.many.count = 100;
    const struct aster_answer *answer = grantor_client_await(&world.a, grantor_client_send(&world.a, &call));
    assert_int_equal(answer->kind, ASTER_ANSWER_RENEWED_MANY);
    assert_int_equal(answer->renewed.count, 100);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(answer->renewed.results[i].status, ASTER_OK);
        assert_denied(&answer->renewed.results[i].decision, i == 50 ? "NOT_HOLDER" : "NONE");
    }
}

static char large[60000];

static void put_large(struct grantor_client *client, const char *resource)
{
    int64_t epoch = grantor_world_take(client, resource, TTL_MS);
    struct aster_call put = {.kind = ASTER_CALL_OPERATION};
    memset(large, 'x', sizeof large);
    put.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    put.one.operation.kind = ASTER_OP_PUT;
    put.one.operation.resource = aster_text(resource);
    put.one.operation.epoch = epoch;
    put.one.operation.holder = client->identity;
    put.one.operation.value = (struct aster_bytes){large, sizeof large};
    assert_granted(grantor_client_decision(client, grantor_client_send(client, &put)));
}

static void expect_large(struct grantor_client *client, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct aster_decision *decision = grantor_client_decision(client, ids[i]);
        assert_granted(decision);
        assert_true(aster_bytes_equal(decision->snapshot.value, (struct aster_bytes){large, sizeof large}));
    }
}

static void large_answers_to_many_requests_at_once_all_arrive(void **state)
{
    (void)state;
    struct grantor_client *clients[] = {&world.a, &world.op}; /* over QUIC and over TCP */
    uint64_t ids[100];
    put_large(&world.a, "catalog");
    for (size_t c = 0; c < 2; c++) {
        for (int i = 0; i < 100; i++) {
            ids[i] = grantor_client_operate(clients[c], ASTER_OP_INSPECT, "catalog", 0);
        }
        expect_large(clients[c], ids, 100);
        grantor_world_take(clients[c], c == 0 ? "next" : "last", TTL_MS);
    }
    assert_int_equal(grantor_process_count_log(&world.server, "reply-not-sent"), 0);
}

static void whoever_does_not_read_its_answers_is_waited_for_and_delays_nobody(void **state)
{
    (void)state;
    uint64_t ids[200];
    put_large(&world.a, "catalog");
    grantor_client_throttle(&world.b, true);
    for (int i = 0; i < 200; i++) {
        ids[i] = grantor_client_operate(&world.b, ASTER_OP_INSPECT, "catalog", 0);
    }
    uint64_t acquire = grantor_client_acquire(&world.b, "mine", TTL_MS, 0);
    for (int i = 0; i < 100; i++) {
        settle(&world.op);
    }
    assert_false(grantor_client_has(&world.b, ids[199]));
    grantor_client_throttle(&world.b, false);
    expect_large(&world.b, ids, 200);
    assert_granted(grantor_client_decision(&world.b, acquire));
    assert_int_equal(grantor_process_count_log(&world.server, "reply-not-sent"), 0);
}

/* What waited for it is freed with its link, also from the count of what its identity has in flight. */
static void whoever_leaves_without_reading_costs_nothing(void **state)
{
    (void)state;
    put_large(&world.a, "catalog");
    grantor_client_throttle(&world.b, true);
    for (int i = 0; i < 200; i++) {
        grantor_client_operate(&world.b, ASTER_OP_INSPECT, "catalog", 0);
    }
    settle(&world.op);
    grantor_client_close(&world.b);
    settle(&world.op);
    grantor_client_connect(&world.b, world.server.tcp, true);
    grantor_world_take(&world.b, "mine", TTL_MS);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(nobody_renews_releases_or_writes_under_anothers_lease),
        EACH(the_holder_is_whom_the_handshake_authenticated),
        EACH(revoke_needs_the_operator_role),
        EACH(refusals_do_not_flood_the_history),
        EACH(refused_renewals_of_one_message_do_not_flood_the_history),
        EACH(waiters_are_granted_in_the_order_of_their_arrival),
        EACH(a_waiter_takes_over_when_the_lease_expires),
        EACH(waiting_ends_with_a_denial_when_its_time_is_over),
        EACH(a_cancelled_waiter_is_told_so_and_skipped),
        EACH(a_waiter_that_disconnects_is_skipped),
        EACH(an_acquire_whose_client_left_blocks_nobody),
        EACH(a_lost_reply_is_repeated_under_the_same_id_without_a_second_effect),
        EACH(many_renewals_are_answered_in_one_message),
        EACH(large_answers_to_many_requests_at_once_all_arrive),
        EACH(whoever_does_not_read_its_answers_is_waited_for_and_delays_nobody),
        EACH(whoever_leaves_without_reading_costs_nothing),
    };
    int failed = cmocka_run_group_tests_name("journal", tests, NULL, NULL);
    journal = NULL;
    return failed + cmocka_run_group_tests_name("shared file", tests, NULL, NULL);
}
