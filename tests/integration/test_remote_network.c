/* The library against the real server over a bad network: replies that never arrive, certificates that are renewed, a
 * machine that sleeps. */
#include "support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/runtime.h"
#include "aster/sys/serializer.h"
#include "support/fake_clock.h"
#include "support/grantor_process.h"
#include "support/quic_ca.h"
#include "support/quic_relay.h"
#include "support/remote_grantor.h"

#define SERVER_ID "spiffe://example.org/asterd"
#define CLIENT_ID "spiffe://example.org/worker/1"
#define HOUR_MS 3600000
#define PATIENCE_MS 20000

static struct grantor_process server;
static struct aster_relay relay;
static struct remote_client client;
static char server_id[ASTER_NODE_ID_SIZE];
static char addresses[2 * ASTER_ADDRESS_TEXT_MAX];
static struct aster_reply reply;
static struct aster_error error;

static struct aster_address port_address(uint16_t port)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    struct aster_address address;
    size_t count = 0;
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_int_equal(aster_address_resolve(text, false, &address, 1, &count, &error), ASTER_OK);
    return address;
}

static int open_all(void **state)
{
    char node[96];
    char text[512];
    (void)state;
    grantor_process_init(&server, "sqlite");
    remote_client_init(&client);
    snprintf(text, sizeof text, "node \"%s\" {}\n", client.id);
    grantor_process_configure(&server, text);
    grantor_process_start(&server);
    snprintf(node, sizeof node, "%s/node", server.directory);
    assert_int_equal(aster_node_id(node, server_id, &error), ASTER_OK);
    struct aster_address address = port_address(server.quic);
    quic_relay_start(&relay, &address);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    aster_reply_fini(&reply);
    remote_client_fini(&client);
    aster_relay_stop(&relay);
    grantor_process_fini(&server);
    return 0;
}

static struct aster_grantor_options options_through_relay(void)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    snprintf(addresses, sizeof addresses, "%s@%s", server_id, aster_address_text(&relay.address, text));
    options.addresses = addresses;
    options.node = client.directory;
    options.idle_timeout_ms = 600;
    options.connect_timeout_ms = 1000;
    options.without_tcp = true;
    return options;
}

/* The server decides, and what it answers never arrives. */
struct caller {
    pthread_t thread;
    struct aster_operation operation;
    aster_status status;
    struct aster_reply reply;
    struct aster_error error;
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    caller->status =
        aster_serializer_call(client.serializer, &caller->operation, PATIENCE_MS, &caller->reply, &caller->error);
    return NULL;
}

/* `decided`: what the server logs about the decision; NULL: it logs nothing. */
static void lose_the_reply(struct caller *caller, enum aster_operation_kind kind, int64_t epoch, const char *decided)
{
    memset(caller, 0, sizeof *caller);
    caller->operation = (struct aster_operation)ASTER_OPERATION_INIT;
    caller->operation.kind = kind;
    caller->operation.resource = aster_text("catalog");
    caller->operation.caller = caller->operation.holder = aster_text(client.id);
    caller->operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    caller->operation.epoch = epoch;
    caller->operation.value = aster_text(kind == ASTER_OP_PUT ? "value" : NULL);
    if (kind != ASTER_OP_PUT) {
        caller->operation.holder = aster_text(NULL);
    }
    assert_int_equal(aster_inspect(client.serializer, aster_text("other"), &reply, &error), ASTER_OK);
    atomic_store(&relay.dark, ASTER_RELAY_TO_CLIENT);
    assert_int_equal(pthread_create(&caller->thread, NULL, call, caller), 0);
    if (decided != NULL) {
        grantor_process_await_log(&server, decided, "catalog");
    }
}

static void expect_the_reply(struct caller *caller, int64_t epoch)
{
    atomic_store(&relay.dark, 0);
    pthread_join(caller->thread, NULL);
    if (caller->status != ASTER_OK) {
        fail_msg("%s", caller->error.message);
    }
    assert_int_equal(caller->reply.decision.reason, ASTER_REASON_NONE);
    assert_int_equal(caller->reply.decision.epoch, epoch);
}

static void await_lost_connection(unsigned times)
{
    unsigned found = 0;
    while (found < times) {
        found = 0;
        usleep(5000);
        pthread_mutex_lock(&client.lock);
        for (const char *at = client.log; (at = strstr(at, "connection lost")) != NULL; at++) {
            found++;
        }
        pthread_mutex_unlock(&client.lock);
    }
}

static void a_reply_that_the_network_drops_is_asked_for_again_and_has_one_effect(void **state)
{
    (void)state;
    struct caller caller;
    struct aster_grantor_options options = options_through_relay();
    options.log = remote_client_log;
    options.log_user = &client;
    remote_client_open(&client, &options);

    lose_the_reply(&caller, ASTER_OP_ACQUIRE, 0, "event=granted");
    await_lost_connection(1);
    expect_the_reply(&caller, 1);
    assert_true(caller.reply.decision.replayed);
    aster_reply_fini(&caller.reply);

    lose_the_reply(&caller, ASTER_OP_PUT, 1, NULL);
    await_lost_connection(2);
    expect_the_reply(&caller, 1);
    assert_int_equal(caller.reply.decision.snapshot.value_revision, 1); /* written once */
    aster_reply_fini(&caller.reply);

    lose_the_reply(&caller, ASTER_OP_RELEASE, 1, "event=released");
    await_lost_connection(3);
    expect_the_reply(&caller, 2);
    assert_true(caller.reply.decision.replayed);
    aster_reply_fini(&caller.reply);

    assert_int_equal(grantor_process_count_log(&server, "event=granted"), 1);
    assert_int_equal(grantor_process_count_log(&server, "event=released"), 1);
}

static struct aster_lease *take(int64_t ttl_ms)
{
    struct aster_lease *lease = NULL;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    options.renew_interval_ms = 100;
    options.wait_ms = PATIENCE_MS;
    if (aster_lease_acquire(client.serializer, aster_text("catalog"), aster_grantor_identity(client.serializer),
                            &options, &lease, &reply, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_non_null(lease);
    return lease;
}

/* Two more renewals under the same epoch. */
static void expect_renewals(struct aster_lease *lease, int64_t epoch)
{
    struct aster_lease_report report;
    aster_lease_report_get(lease, &report);
    int64_t before = report.renewals;
    do {
        usleep(5000);
        aster_lease_report_get(lease, &report);
        if (report.status != ASTER_LEASE_HELD) {
            fail_msg("%s: %s", aster_lease_status_name(report.status), report.last_error.message);
        }
    } while (report.renewals < before + 2);
    assert_int_equal(report.epoch, epoch);
}

/* The next handshake uses what is in the files then. */
static void reconnect(void)
{
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    await_lost_connection(1);
    atomic_store(&relay.dark, 0);
}

static void a_certificate_renewed_under_the_same_key_keeps_the_lease(void **state)
{
    (void)state;
    struct aster_grantor_options options = options_through_relay();
    options.log = remote_client_log;
    options.log_user = &client;
    remote_client_open(&client, &options);
    struct aster_lease *lease = take(10000);
    assert_int_equal(aster_node_renew(client.directory, "renewed", 2, &error), ASTER_OK);
    reconnect();
    expect_renewals(lease, 1);
    assert_int_equal(aster_lease_release(lease, 5000, NULL, &error), ASTER_OK);
    aster_lease_destroy(lease);
}

/* Another key and another serial number, the same SPIFFE id; and the certificate of before has expired. */
static void a_certificate_with_the_same_spiffe_id_keeps_the_lease(void **state)
{
    (void)state;
    struct quic_ca ca;
    char paths[5][96];
    static const char *const names[] = {"roots.pem", "server.key", "server.crt", "client.key", "client.crt"};
    char lines[512];
    for (int i = 0; i < 5; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", server.directory, names[i]);
    }
    quic_ca_init(&ca, "Example CA");
    quic_ca_write_root(&ca, paths[0]);
    const struct quic_ca_leaf of_server = {{SERVER_ID}, NULL, -60, 86400, NULL};
    struct quic_ca_leaf of_client = {{CLIENT_ID}, NULL, -60, 4, NULL};
    quic_ca_issue(&ca, &of_server, paths[1], paths[2]);
    quic_ca_issue(&ca, &of_client, paths[3], paths[4]);
    snprintf(lines, sizeof lines, "key = \"%s\"\ncertificate = \"%s\"\nroots = \"%s\"\n", paths[1], paths[2], paths[0]);
    assert_int_equal(grantor_process_end(&server, SIGTERM), 0);
    server.files = lines;
    grantor_process_configure(&server, "node \"" CLIENT_ID "\" {}\n");
    grantor_process_start(&server);

    char text[ASTER_ADDRESS_TEXT_MAX];
    struct aster_grantor_options options = options_through_relay();
    snprintf(addresses, sizeof addresses, SERVER_ID "@%s", aster_address_text(&relay.address, text));
    options.node = NULL;
    options.key = paths[3];
    options.certificate = paths[4];
    options.roots = paths[0];
    options.log = remote_client_log;
    options.log_user = &client;
    remote_client_open(&client, &options);
    struct aster_lease *lease = take(30000);
    of_client.until_seconds = 86400;
    quic_ca_issue(&ca, &of_client, paths[3], paths[4]);
    usleep(4500000); /* the first certificate is over now: only the new one lets the client in */
    reconnect();
    expect_renewals(lease, 1);
    /* A certificate of somebody else in its place is not taken: the lease belongs to who opened the serializer. */
    of_client.uris[0] = "spiffe://example.org/worker/2";
    quic_ca_issue(&ca, &of_client, paths[3], paths[4]);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    await_lost_connection(2);
    atomic_store(&relay.dark, 0);
    expect_renewals(lease, 1);
    aster_lease_destroy(lease);
    quic_ca_fini(&ca);
}

static void a_lost_holder_acquires_again_and_is_renewed_again(void **state)
{
    (void)state;
    struct aster_lease_report report;
    struct aster_grantor_options options = options_through_relay();
    remote_client_open(&client, &options);
    struct aster_lease *lease = take(1000);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    do {
        usleep(5000);
        aster_lease_report_get(lease, &report);
    } while (report.status == ASTER_LEASE_HELD);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_int_equal(report.reason, ASTER_LEASE_REASON_UNREACHABLE);
    assert_null(aster_lease_fence(lease));
    aster_lease_destroy(lease);
    atomic_store(&relay.dark, 0);
    lease = take(10000);
    int64_t epoch = aster_lease_fence(lease)->epoch;
    assert_true(epoch >= 2);
    expect_renewals(lease, epoch);
    expect_renewals(lease, epoch);
    assert_int_equal(aster_lease_release(lease, 5000, NULL, &error), ASTER_OK);
    aster_lease_destroy(lease);
}

static void a_holder_that_slept_is_lost_and_may_acquire_again(void **state)
{
    (void)state;
    struct fake_clock *clock = fake_clock_create();
    struct aster_runtime_options runtime_options = ASTER_RUNTIME_OPTIONS_INIT;
    struct aster_runtime *runtime = NULL;
    struct aster_grantor_options options = options_through_relay();
    struct aster_lease *lease = NULL;
    struct aster_lease_report report;
    struct aster_lease_options lease_options = ASTER_LEASE_OPTIONS_INIT;
    runtime_options.clock = options.clock = fake_clock_clock(clock);
    assert_int_equal(aster_runtime_create(&runtime_options, &runtime, &error), ASTER_OK);
    remote_client_open(&client, &options);
    lease_options.ttl_ms = 1000;
    lease_options.wait_ms = HOUR_MS;
    lease_options.runtime = runtime;
    assert_int_equal(aster_lease_acquire(client.serializer, aster_text("catalog"), aster_text(client.id),
                                         &lease_options, &lease, NULL, &error),
                     ASTER_OK);
    assert_non_null(aster_lease_fence(lease));
    fake_clock_leap_ms(clock, HOUR_MS);
    assert_null(aster_lease_fence(lease));
    aster_lease_report_get(lease, &report);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_int_equal(report.reason, ASTER_LEASE_REASON_CLOCK_JUMP);
    aster_lease_destroy(lease);
    /* The same process and connection go on: after the ttl, which runs at the server, it is granted again. */
    assert_int_equal(aster_lease_acquire(client.serializer, aster_text("catalog"), aster_text(client.id),
                                         &lease_options, &lease, &reply, &error),
                     ASTER_OK);
    assert_non_null(aster_lease_fence(lease));
    assert_true(aster_lease_fence(lease)->epoch >= 2);
    assert_int_equal(aster_lease_release(lease, PATIENCE_MS, NULL, &error), ASTER_OK);
    aster_lease_destroy(lease);
    aster_serializer_destroy(client.serializer);
    client.serializer = NULL;
    aster_runtime_destroy(runtime);
    fake_clock_destroy(clock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_that_the_network_drops_is_asked_for_again_and_has_one_effect),
        TEST(a_certificate_renewed_under_the_same_key_keeps_the_lease),
        TEST(a_certificate_with_the_same_spiffe_id_keeps_the_lease),
        TEST(a_lost_holder_acquires_again_and_is_renewed_again),
        TEST(a_holder_that_slept_is_lost_and_may_acquire_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
