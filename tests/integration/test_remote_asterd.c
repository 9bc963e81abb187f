/* The library and the commands against the real server, in processes of their own. */
#include "support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aster/lease.h"
#include "support/grantor_process.h"
#include "support/remote_grantor.h"
#include "support/requests.h"

#define LEASES 200

static struct grantor_process server;
static struct remote_client a;
static struct remote_client b;
static char server_id[ASTER_NODE_ID_SIZE];
static struct aster_reply reply;
static struct aster_error error;

static void open_client(struct remote_client *client)
{
    static char address[2 * ASTER_ADDRESS_TEXT_MAX];
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    snprintf(address, sizeof address, "%s@127.0.0.1:%u", server_id, server.quic);
    options.addresses = address;
    options.node = client->directory;
    options.idle_timeout_ms = 1000;
    remote_client_open(client, &options);
}

/* With the ports of the time before, if there was one. */
static void start_server(void)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "in-flight-max = 1024\nnode \"%s\" { name = \"a\" }\nnode \"%s\" { name = \"b\" roles = {\"operator\"} }\n",
        a.id, b.id);
    grantor_process_configure(&server, text);
    grantor_process_start(&server);
}

static int open_on(const char *journal)
{
    char node[96];
    grantor_process_init(&server, journal);
    remote_client_init(&a);
    remote_client_init(&b);
    start_server();
    snprintf(node, sizeof node, "%s/node", server.directory);
    assert_int_equal(aster_node_id(node, server_id, &error), ASTER_OK);
    open_client(&a);
    open_client(&b);
    return 0;
}

static int open_all(void **state)
{
    (void)state;
    return open_on(NULL);
}

static int open_memory(void **state)
{
    (void)state;
    return open_on("sqlite");
}

static int close_all(void **state)
{
    (void)state;
    aster_reply_fini(&reply);
    remote_client_fini(&a);
    remote_client_fini(&b);
    grantor_process_fini(&server);
    return 0;
}

static struct aster_lease *take(struct remote_client *client, const char *resource, int64_t ttl_ms, int64_t wait_ms)
{
    struct aster_lease *lease = NULL;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    options.wait_ms = wait_ms;
    options.renew_interval_ms = 200;
    if (aster_lease_acquire(client->serializer, aster_text(resource), aster_text(client->id), &options, &lease, &reply,
                            &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return lease;
}

static void only_an_operator_revokes_and_the_holder_learns_it(void **state)
{
    (void)state;
    struct aster_lease *lease = take(&a, "catalog", 20000, 0);
    struct aster_lease_report report;
    assert_non_null(lease);
    assert_int_equal(aster_revoke(a.serializer, aster_text("catalog"), aster_text(a.id), -1, &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_UNAUTHORIZED);
    assert_int_equal(aster_revoke(b.serializer, aster_text("catalog"), aster_text(b.id), -1, &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    do {
        usleep(1000);
        aster_lease_report_get(lease, &report);
    } while (report.status == ASTER_LEASE_HELD);
    assert_int_equal(report.status, ASTER_LEASE_FENCED);
    aster_lease_destroy(lease);
}

static void leases_survive_that_the_server_is_killed(void **state)
{
    (void)state;
    static struct aster_lease *leases[LEASES];
    struct aster_lease_report report;
    for (unsigned i = 0; i < LEASES; i++) {
        char name[16];
        snprintf(name, sizeof name, "lease/%u", i);
        leases[i] = take(&a, name, 6000, 0);
        assert_non_null(leases[i]);
    }
    assert_int_equal(grantor_process_end(&server, SIGKILL), 256 + SIGKILL);
    start_server();
    /* Everybody renews under the same epoch, and nobody else is granted. */
    for (unsigned i = 0; i < LEASES; i++) {
        do {
            usleep(1000);
            aster_lease_report_get(leases[i], &report);
            if (report.status != ASTER_LEASE_HELD) {
                fail_msg("%s after %lld renewals: %s; the connection: %s", aster_lease_status_name(report.status),
                         (long long)report.renewals, report.last_error.message, a.log);
            }
        } while (report.renewals < 2);
        assert_int_equal(report.epoch, 1);
    }
    assert_null(take(&b, "lease/0", 6000, 0));
    for (unsigned i = 0; i < LEASES; i++) {
        assert_int_equal(aster_lease_release(leases[i], 5000, NULL, &error), ASTER_OK);
        aster_lease_destroy(leases[i]);
    }
}

static void a_waiter_takes_over_from_one_that_is_gone(void **state)
{
    (void)state;
    struct aster_lease *gone = take(&a, "catalog", 1000, 0);
    assert_non_null(gone);
    aster_lease_drop(gone);
    struct aster_lease *next = take(&b, "catalog", 20000, 10000);
    assert_non_null(next);
    assert_true(reply.decision.takeover || reply.decision.epoch == 3); /* at the expiry, or after it was cleared away */
    assert_non_null(aster_lease_fence(next));
    aster_lease_destroy(gone);
    aster_lease_destroy(next);
}

#define ASKED 6000 /* at once: more than the server takes of one identity */

static void a_client_does_not_ask_more_at_once_than_the_server_takes(void **state)
{
    (void)state;
    static struct asked inspections[ASKED];
    for (unsigned i = 0; i < ASKED; i++) {
        ask(a.serializer, &inspections[i], op_inspect("catalog"), 0);
    }
    assert_int_equal(aster_inspect(a.serializer, aster_text("catalog"), &reply, &error), ASTER_OK); /* the last */
    for (unsigned i = 0; i < ASKED; i++) {
        if (!asked_granted(&inspections[i])) {
            fail_msg("%u: %s", i, inspections[i].message);
        }
        asked_fini(&inspections[i]);
    }
}

static bool count_event(const struct aster_event *event, void *user)
{
    (void)event;
    ++*(size_t *)user;
    return true;
}

static bool count_row(const struct aster_snapshot *snapshot, void *user)
{
    (void)snapshot;
    ++*(size_t *)user;
    return true;
}

static void reads_and_the_fenced_value_work(void **state)
{
    (void)state;
    struct aster_lease *lease = take(&a, "catalog", 10000, 0);
    const struct aster_fence *fence = aster_lease_fence(lease);
    assert_non_null(fence);
    assert_int_equal(aster_put(a.serializer, fence, fence->holder, 0, aster_text("value"), &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    assert_int_equal(aster_inspect(b.serializer, fence->resource, &reply, &error), ASTER_OK);
    assert_true(aster_bytes_equal(reply.decision.snapshot.value, aster_text("value")));
    size_t rows = 0;
    size_t events = 0;
    assert_int_equal(aster_list(b.serializer, aster_text(""), count_row, &rows, &error), ASTER_OK);
    assert_int_equal(rows, 1);
    assert_int_equal(aster_history(b.serializer, NULL, count_event, &events, &error), ASTER_OK);
    assert_int_equal(events, 1);
    aster_lease_destroy(lease);
}

#define LONG_HISTORY 3000 /* events with names so long that no single reply holds them all */

static bool follow_event(const struct aster_event *event, void *user)
{
    int64_t *revision = user;
    assert_true(event->revision > *revision);
    *revision = event->revision;
    return true;
}

static enum aster_reason acquire_over_the_wire(const char *name)
{
    const struct aster_operation acquire = op_acquire(name, a.id, 60000);
    assert_int_equal(aster_serializer_call(a.serializer, &acquire, 0, &reply, &error), ASTER_OK);
    return reply.decision.reason;
}

static void a_history_longer_than_one_reply_is_told_to_its_end(void **state)
{
    (void)state;
    char name[500];
    size_t events = 0;
    int64_t last = 0;
    memset(name, 'x', sizeof name);
    for (int i = 0; i < LONG_HISTORY; i++) {
        snprintf(name + 480, sizeof name - 480, "%d", i);
        assert_int_equal(acquire_over_the_wire(name), ASTER_REASON_NONE);
    }
    struct aster_history_query newest = ASTER_HISTORY_QUERY_INIT;
    assert_int_equal(aster_history(b.serializer, NULL, count_event, &events, &error), ASTER_OK);
    assert_int_equal(events, LONG_HISTORY);
    newest.limit = LONG_HISTORY - 100;
    events = 0;
    assert_int_equal(aster_history(b.serializer, &newest, count_event, &events, &error), ASTER_OK);
    assert_int_equal(events, newest.limit);
    assert_int_equal(aster_history(b.serializer, &newest, follow_event, &last, &error), ASTER_OK);
    assert_int_equal(last, LONG_HISTORY);
}

static void commands_run_against_it(void **state)
{
    (void)state;
    char line[1024];
    char output[256] = "";
    setenv("ASTER_NODE", a.directory, 1);
    snprintf(line, sizeof line,
             "$ASTER_BIN run nightly --store aster://%s@127.0.0.1:%u -- sh -c 'echo $ASTER_EPOCH $ASTER_HOLDER'",
             server_id, server.quic);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(output, sizeof output, pipe));
    assert_int_equal(pclose(pipe), 0);
    snprintf(line, sizeof line, "1 %s\n", a.id);
    assert_string_equal(output, line);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_an_operator_revokes_and_the_holder_learns_it),
        TEST(leases_survive_that_the_server_is_killed),
        TEST(a_waiter_takes_over_from_one_that_is_gone),
        TEST(reads_and_the_fenced_value_work),
        TEST(a_client_does_not_ask_more_at_once_than_the_server_takes),
        cmocka_unit_test_setup_teardown(a_history_longer_than_one_reply_is_told_to_its_end, open_memory, close_all),
        TEST(commands_run_against_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
