/* A real asterd through its life: killed, drained, reloaded, misconfigured, attacked. */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support/grantor_world.h"
#include "support/quic_side.h"
#include "support/unit.h"

#define TTL_MS 60000
#define WAIT_MS 20000

static struct grantor_world world;

static int open_world(void **state)
{
    (void)state;
    grantor_world_init(&world, NULL);
    grantor_world_configure(&world, "", "");
    grantor_world_start(&world);
    return 0;
}

static int open_impatient_world(void **state)
{
    (void)state;
    grantor_world_init(&world, NULL);
    grantor_world_configure(&world, "", "drain-timeout-ms = 100\n");
    grantor_world_start(&world);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_world_fini(&world);
    return 0;
}

static void restart(void)
{
    grantor_world_configure(&world, "", ""); /* now with the ports that it was given */
    grantor_world_start(&world);
}

static void a_killed_server_keeps_epochs_and_holders(void **state)
{
    (void)state;
    int64_t held = grantor_world_take(&world.a, "held", TTL_MS);
    int64_t freed = grantor_world_take(&world.a, "freed", TTL_MS);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "freed", freed)));
    assert_int_equal(grantor_process_end(&world.server, SIGKILL), 256 + SIGKILL);
    restart();
    assert_granted(grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "held", held)));
    assert_denied(grantor_client_decision(&world.b, grantor_client_acquire(&world.b, "held", TTL_MS, 0)),
                  "HELD_BY_OTHER");
    assert_true(grantor_world_take(&world.b, "freed", TTL_MS) > freed);
}

static void terminate_answers_who_waits_and_ends_with_success(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog", TTL_MS);
    uint64_t waiting = grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_INSPECT, "settle", 0));
    assert_int_equal(grantor_process_end(&world.server, SIGTERM), 0);
    const struct aster_answer *answer = grantor_client_await(&world.b, waiting);
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_CLOSED);
    grantor_client_await_close(&world.b);
    assert_int_equal(world.b.end, ASTER_LINK_END_PEER);
}

static void unknown_peers_are_refused_in_the_handshake(void **state)
{
    (void)state;
    struct grantor_client stranger;
    grantor_client_init(&stranger, "stranger");
    assert_false(grantor_client_link(&stranger, world.server.quic, false));
    assert_int_equal(stranger.end, ASTER_LINK_END_REFUSED);
    assert_false(grantor_client_link(&stranger, world.server.tcp, true));
    assert_int_equal(stranger.end, ASTER_LINK_END_REFUSED);
    grantor_process_await_log(&world.server, "event=peer-refused", stranger.id);
    grantor_client_fini(&stranger);
}

static void a_reload_admits_and_expels_nodes_and_fences_nobody(void **state)
{
    (void)state;
    struct grantor_client fresh;
    char node[256];
    grantor_client_init(&fresh, "fresh");
    assert_false(grantor_client_link(&fresh, world.server.quic, false));
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    snprintf(node, sizeof node, "node \"%s\" {}\nnode \"%s\" {}\n", fresh.id, world.a.id);
    grantor_process_configure(&world.server, node);
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded nodes=2 expelled=2", NULL);
    grantor_client_await_close(&world.b);
    assert_int_equal(world.b.end, ASTER_LINK_END_REFUSED);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)));
    grantor_client_connect(&fresh, world.server.quic, false);
    assert_denied(grantor_client_decision(&fresh, grantor_client_acquire(&fresh, "catalog", TTL_MS, 0)),
                  "HELD_BY_OTHER");
    grantor_client_fini(&fresh);
}

static void a_broken_configuration_is_not_loaded(void **state)
{
    (void)state;
    grantor_process_configure(&world.server, "node \"short\" {}\n");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=not-reloaded", "asterd.conf:7: node");
    grantor_world_take(&world.a, "catalog", TTL_MS); /* still admitted */
}

static void withdrawing_a_role_leaves_the_lease_in_flight(void **state)
{
    (void)state;
    grantor_world_configure(&world, "", "requires { acquire = \"worker\" }\n");
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)));
    assert_denied(grantor_client_decision(&world.a, grantor_client_acquire(&world.a, "other", TTL_MS, 0)),
                  "UNAUTHORIZED");
}

static void a_prefix_bounds_what_an_identity_may_use_and_see(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog/1", TTL_MS);
    grantor_world_take(&world.a, "invoice/1", TTL_MS);
    grantor_world_configure(&world, "resources = {\"invoice/\"}", "");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    grantor_world_take(&world.b, "invoice/2", TTL_MS);
    assert_denied(grantor_client_decision(&world.b, grantor_client_acquire(&world.b, "catalog/2", TTL_MS, 0)),
                  "UNAUTHORIZED");
    const struct aster_decision *hidden =
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_INSPECT, "catalog/1", 0));
    assert_denied(hidden, "UNAUTHORIZED");
    assert_false(hidden->snapshot.held);
    struct aster_call list = {.kind = ASTER_CALL_LIST};
    const struct aster_answer *rows = grantor_client_await(&world.b, grantor_client_send(&world.b, &list));
    assert_int_equal(rows->kind, ASTER_ANSWER_ROWS);
    assert_int_equal(rows->rows.count, 2);
    assert_true(aster_bytes_equal(rows->rows.rows[0].resource, aster_text("invoice/1")));
}

/* The store is blocked while the client leaves: its acquire is taken back, or given back once it is granted. */
/* Nothing is decided until it is rolled back or closed. */
static sqlite3 *lock_store(void)
{
    char path[128];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/leases.db", world.server.directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 5000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void a_client_that_leaves_while_the_store_is_busy_blocks_nobody(void **state)
{
    (void)state;
    struct aster_call acquire = grantor_call_acquire("catalog", TTL_MS, 0);
    struct aster_call list = {.kind = ASTER_CALL_LIST};
    sqlite3 *db = lock_store();
    grantor_client_send(&world.b, &acquire);
    grantor_client_await(&world.b, grantor_client_send(&world.b, &list)); /* so the acquire is in the store's queue */
    grantor_client_close(&world.b);
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    uint64_t next = grantor_client_acquire(&world.op, "catalog", TTL_MS, WAIT_MS);
    assert_granted(grantor_client_decision(&world.op, next));
    grantor_process_await_log(&world.server, "event=granted", world.op.id);
    if (grantor_process_count_log(&world.server, "event=granted") == 2) { /* else it was cancelled in time */
        grantor_process_await_log(&world.server, "event=released", world.b.id);
    }
}

static void metrics_and_health_are_served_on_the_loopback(void **state)
{
    (void)state;
    static char text[32768];
    assert_int_equal(grantor_process_end(&world.server, SIGTERM), 0);
    grantor_world_configure(&world, "", "http = \"127.0.0.1:0\"\n");
    grantor_world_start(&world);
    grantor_world_take(&world.a, "catalog", TTL_MS);
    grantor_client_decision(&world.b, grantor_client_acquire(&world.b, "catalog", TTL_MS, 0));
    grantor_process_fetch(&world.server, "/metrics", text, sizeof text);
    assert_non_null(strstr(text, "200 OK"));
    assert_non_null(strstr(text, "\naster_decisions_total{verb=\"acquire\",outcome=\"granted\"} 1\n"));
    assert_non_null(strstr(text, "\naster_decisions_total{verb=\"acquire\",outcome=\"denied\"} 1\n"));
    assert_non_null(strstr(text, "\naster_connections 3\n"));
    grantor_process_fetch(&world.server, "/livez", text, sizeof text);
    assert_non_null(strstr(text, "alive"));
    grantor_process_fetch(&world.server, "/readyz", text, sizeof text);
    assert_non_null(strstr(text, "ready"));
    grantor_process_fetch(&world.server, "/other", text, sizeof text);
    assert_non_null(strstr(text, "404"));
}

/* Each attacker loses its own link and nothing else. */
static void garbage_costs_only_the_connection_that_sent_it(void **state)
{
    (void)state;
    static unsigned char large[ASTER_FRAME_PAYLOAD_MAX];
    struct aster_call hello = {.kind = ASTER_CALL_HELLO, .hello = {.version = 1}};
    memset(large, 0xff, sizeof large);
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    for (int round = 0; round < 6; round++) {
        bool tcp = round % 2 == 1;
        assert_true(grantor_client_link(&world.b, tcp ? world.server.tcp : world.server.quic, tcp));
        if (round < 2) {
            grantor_client_send_bytes(&world.b, "not protobuf", 12);
        } else if (round < 4) {
            grantor_client_send_bytes(&world.b, large, sizeof large);
        } else {
            grantor_client_send(&world.b, &hello);
            grantor_client_await(&world.b, 0);
            grantor_client_send(&world.b, &hello); /* the second is one too many */
        }
        grantor_client_await_close(&world.b);
        assert_granted(
            grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)));
    }
}

static void a_malformed_request_is_answered_and_the_connection_goes_on(void **state)
{
    (void)state;
    /* id = 7 and an acquire without a resource */
    grantor_client_send_bytes(&world.a, "\x08\x07\x22\x02\x10\x01", 6);
    const struct aster_answer *answer = grantor_client_await(&world.a, 7);
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_INVALID);
    world.a.last_id = 100;
    grantor_world_take(&world.a, "catalog", TTL_MS);
}

static void an_identity_cannot_have_more_in_flight_than_allowed(void **state)
{
    (void)state;
    grantor_world_configure(&world, "", "in-flight-max = 1024\n");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    grantor_world_take(&world.a, "catalog", TTL_MS);
    for (int i = 0; i < 1024; i++) {
        grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    }
    const struct aster_answer *answer =
        grantor_client_await(&world.b, grantor_client_acquire(&world.b, "free", TTL_MS, 0));
    assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
    assert_int_equal(answer->error.status, ASTER_ERR_LIMIT);
    grantor_world_take(&world.a, "free", TTL_MS); /* others are not affected */
}

static void an_identity_cannot_have_more_connections_than_allowed(void **state)
{
    (void)state;
    static struct grantor_client second;
    static struct grantor_client third;
    grantor_world_configure(&world, "", "connections-per-node-max = 2\n");
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=reloaded", NULL);
    grantor_client_init(&second, "second");
    grantor_client_init(&third, "third");
    second.as = third.as = &world.a;
    second.identity = third.identity = world.a.identity;
    grantor_client_connect(&second, world.server.tcp, true);
    if (grantor_client_link(&third, world.server.quic, false)) {
        grantor_client_await_close(&third);
    }
    assert_int_equal(third.end, ASTER_LINK_END_OVERLOAD);
    grantor_process_await_log(&world.server, "event=too-many-connections", world.a.id);
    grantor_world_take(&world.a, "catalog", TTL_MS); /* those that it has stay */
    grantor_world_take(&second, "invoice", TTL_MS);
    grantor_client_close(&second);
    grantor_client_connect(&third, world.server.quic, false);
    grantor_client_fini(&third);
    grantor_client_fini(&second);
}

/* The store answers after the drain has given up waiting. */
static void an_end_that_does_not_wait_for_a_busy_store_is_orderly_all_the_same(void **state)
{
    (void)state;
    sqlite3 *store = lock_store();
    for (int i = 0; i < 10; i++) {
        grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", 1); /* which is done also for one who left */
        grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    }
    struct aster_call list = {.kind = ASTER_CALL_LIST};
    grantor_client_await(&world.a, grantor_client_send(&world.a, &list)); /* they are in the store's queue */
    grantor_client_await(&world.b, grantor_client_send(&world.b, &list));
    grantor_client_close(&world.b);
    assert_int_equal(grantor_process_end(&world.server, SIGTERM), 0);
    grantor_process_await_log(&world.server, "event=drained", "answered=some");
    sqlite3_close(store);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_killed_server_keeps_epochs_and_holders),
        EACH(terminate_answers_who_waits_and_ends_with_success),
        EACH(unknown_peers_are_refused_in_the_handshake),
        EACH(a_reload_admits_and_expels_nodes_and_fences_nobody),
        EACH(a_broken_configuration_is_not_loaded),
        EACH(withdrawing_a_role_leaves_the_lease_in_flight),
        EACH(a_prefix_bounds_what_an_identity_may_use_and_see),
        EACH(a_client_that_leaves_while_the_store_is_busy_blocks_nobody),
        EACH(metrics_and_health_are_served_on_the_loopback),
        EACH(garbage_costs_only_the_connection_that_sent_it),
        EACH(a_malformed_request_is_answered_and_the_connection_goes_on),
        EACH(an_identity_cannot_have_more_in_flight_than_allowed),
        EACH(an_identity_cannot_have_more_connections_than_allowed),
        cmocka_unit_test_setup_teardown(an_end_that_does_not_wait_for_a_busy_store_is_orderly_all_the_same,
                                        open_impatient_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
