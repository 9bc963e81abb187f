/* Very many leases of one process at a real asterd, none of which may expire. 10,000 for ten seconds, unless the
 * environment asks for more: ASTER_LOAD_LEASES, ASTER_LOAD_TTL_MS, ASTER_LOAD_SECONDS (see scripts/soak). */
#include "support/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/clock.h"
#include "support/grantor_process.h"
#include "support/remote_grantor.h"

#define GROUP 20000 /* a server lets one identity have 65,536 operations unanswered */
#define SHELVES 100 /* prefixes of the names: a list of one does not walk over all rows again for every page */

static struct grantor_process server;
static struct remote_client client;
static struct aster_error error;

static int64_t parameter(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoll(text, NULL, 10) : otherwise;
}

static int64_t now_ms(void)
{
    return aster_clock_now_ns(aster_clock_system()) / 1000000;
}

static int open_all(void **state)
{
    static char address[2 * ASTER_ADDRESS_TEXT_MAX];
    char text[256];
    char node[96];
    char server_id[ASTER_NODE_ID_SIZE];
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    (void)state;
    grantor_process_init(&server, "sqlite");
    remote_client_init(&client);
    snprintf(text, sizeof text, "node \"%s\" {}\n", client.id);
    grantor_process_configure(&server, text);
    grantor_process_start(&server);
    snprintf(node, sizeof node, "%s/node", server.directory);
    assert_int_equal(aster_node_id(node, server_id, &error), ASTER_OK);
    snprintf(address, sizeof address, "%s@127.0.0.1:%u", server_id, server.quic);
    options.addresses = address;
    options.node = client.directory;
    remote_client_open(&client, &options);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    remote_client_fini(&client);
    grantor_process_fini(&server);
    return 0;
}

static void ask_for_all(struct aster_lease **leases, size_t first, size_t count, int64_t ttl_ms)
{
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    options.request_timeout_ms = 60000; /* a whole group is asked for at once */
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "load/%02zu/%zu", (first + i) % SHELVES, first + i);
        assert_int_equal(
            aster_lease_start(client.serializer, aster_text(name), aster_text(client.id), &options, &leases[i], &error),
            ASTER_OK);
    }
}

static void await_all(struct aster_lease **leases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (aster_lease_wait_acquired(leases[i], 60000, NULL, &error) != ASTER_OK) {
            fail_msg("lease %zu of its group: %s", i, error.message);
        }
    }
}

/* Every one is HELD, under its first epoch, and has been renewed at least so often. */
static int64_t check_all(struct aster_lease **leases, size_t count, int64_t renewals_least)
{
    int64_t renewals = 0;
    for (size_t i = 0; i < count; i++) {
        struct aster_lease_report report;
        aster_lease_report_get(leases[i], &report);
        if (report.status != ASTER_LEASE_HELD || report.epoch != 1 || aster_lease_fence(leases[i]) == NULL) {
            fail_msg("lease %zu is %s (%s) after %" PRId64 " renewals: %s", i, aster_lease_status_name(report.status),
                     aster_lease_reason_name(report.reason), report.renewals, report.last_error.message);
        }
        if (report.renewals < renewals_least) {
            fail_msg("lease %zu was renewed %" PRId64 " times", i, report.renewals);
        }
        renewals += report.renewals;
    }
    return renewals;
}

static bool count_bad_row(const struct aster_snapshot *snapshot, void *user)
{
    size_t *counts = user;
    counts[0]++;
    counts[1] += !snapshot->held || snapshot->remaining_ns == 0 || snapshot->epoch != 1;
    return true;
}

static bool count_expiry(const struct aster_event *event, void *user)
{
    *(size_t *)user += event->kind != ASTER_EVENT_GRANTED;
    return true;
}

static void very_many_leases_of_one_client_are_all_held_to_the_end(void **state)
{
    (void)state;
    size_t count = (size_t)parameter("ASTER_LOAD_LEASES", 10000);
    int64_t ttl_ms = parameter("ASTER_LOAD_TTL_MS", 10000);
    int64_t seconds = parameter("ASTER_LOAD_SECONDS", 10);
    struct aster_lease **leases = calloc(count, sizeof *leases);
    assert_non_null(leases);
    int64_t start_ms = now_ms();
    for (size_t first = 0; first < count; first += GROUP) {
        size_t size = count - first < GROUP ? count - first : GROUP;
        ask_for_all(leases + first, first, size, ttl_ms);
        await_all(leases + first, size);
    }
    int64_t granted_ms = now_ms();
    while (now_ms() < granted_ms + seconds * 1000) {
        sleep(1);
        check_all(leases, count, 0);
    }
    int64_t renewals = check_all(leases, count, seconds * 1000 / ttl_ms); /* without them it would have lapsed */
    size_t rows[2] = {0, 0};
    size_t expiries = 0;
    for (size_t shelf = 0; shelf < SHELVES; shelf++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "load/%02zu/", shelf);
        assert_int_equal(aster_list(client.serializer, aster_text(prefix), count_bad_row, rows, &error), ASTER_OK);
    }
    assert_int_equal(rows[0], count);
    assert_int_equal(rows[1], 0);
    assert_int_equal(aster_history(client.serializer, NULL, count_expiry, &expiries, &error), ASTER_OK);
    assert_int_equal(expiries, 0);
    printf("%zu leases with a ttl of %" PRId64 " ms: granted in %.1f s, held for %" PRId64 " s, %.0f renewals/s\n",
           count, ttl_ms, (double)(granted_ms - start_ms) / 1000, seconds, (double)renewals / (double)seconds);
    for (size_t i = 0; i < count; i++) {
        aster_lease_destroy(leases[i]);
    }
    free(leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(very_many_leases_of_one_client_are_all_held_to_the_end, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
