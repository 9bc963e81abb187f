/* A real asterd with its journal: killed at random moments nothing that it acknowledged is lost, and renewals do not
 * reach the disk. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/files.h"
#include "support/grantor_world.h"
#include "support/seed.h"
#include "support/unit.h"

enum { RESOURCES = 40, KILLS = 12, RENEWALS = 1000 };

#define TTL_MS 60000
#define LATEST_US 4000 /* of a kill, after the requests were sent */

static struct grantor_world world;

static int open_world(void **state)
{
    (void)state;
    grantor_world_init(&world, "sqlite");
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

static void restart(void)
{
    grantor_world_configure(&world, "", "http = \"127.0.0.1:0\"\n"); /* now with the ports that it was given */
    grantor_world_start(&world);
}

/* One resource as its only user knows it. */
struct known {
    char name[16];
    int64_t epoch;
    bool held;
    uint64_t asked;
    enum aster_operation_kind kind; /* what was asked */
};

static unsigned below(uint64_t *seed, unsigned count)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (unsigned)(*seed % count);
}

static void ask_for_a_change(struct known *known, uint64_t *seed)
{
    if (!known->held) {
        known->kind = ASTER_OP_ACQUIRE;
        known->asked = grantor_client_acquire(&world.op, known->name, TTL_MS, 0);
    } else {
        known->kind = below(seed, 3) == 0 ? ASTER_OP_REVOKE : ASTER_OP_RELEASE;
        known->asked = grantor_client_operate(&world.op, known->kind, known->name, known->epoch);
    }
}

/* What the last answer before the kill said; false: there was none. */
static bool hear(struct known *known)
{
    if (!grantor_client_has(&world.op, known->asked)) {
        return false;
    }
    const struct aster_decision *decision = grantor_client_decision(&world.op, known->asked);
    assert_granted(decision);
    assert_int_equal(decision->epoch, known->epoch + 1);
    known->epoch = decision->epoch;
    known->held = decision->snapshot.held;
    return true;
}

static void check(struct known *known, bool heard)
{
    const struct aster_snapshot row =
        grantor_client_decision(&world.op, grantor_client_operate(&world.op, ASTER_OP_INSPECT, known->name, 0))
            ->snapshot;
    bool as_known = row.epoch == known->epoch && row.held == known->held;
    bool one_further = !heard && row.epoch == known->epoch + 1 && row.held == !known->held;
    if (!as_known && !one_further) {
        fail_msg("%s: epoch %lld held %d, but epoch %lld held %d was %s", known->name, (long long)row.epoch, row.held,
                 (long long)known->epoch, known->held, heard ? "acknowledged" : "the last that was");
    }
    known->epoch = row.epoch;
    known->held = row.held;
    if (known->held) { /* holders keep their leases */
        assert_granted(grantor_client_decision(
            &world.op, grantor_client_operate(&world.op, ASTER_OP_RENEW, known->name, known->epoch)));
    }
}

static void what_a_killed_server_acknowledged_is_there_when_it_is_back(void **state)
{
    (void)state;
    static struct known known[RESOURCES];
    uint64_t seed = test_seed(4711);
    size_t answered = 0;
    memset(known, 0, sizeof known);
    for (size_t i = 0; i < RESOURCES; i++) {
        snprintf(known[i].name, sizeof known[i].name, "resource/%zu", i);
    }
    for (int round = 0; round < KILLS; round++) {
        bool heard[RESOURCES];
        for (size_t i = 0; i < RESOURCES; i++) {
            ask_for_a_change(&known[i], &seed);
        }
        aster_pause_ns(below(&seed, LATEST_US) * INT64_C(1000));
        assert_int_equal(grantor_process_end(&world.server, SIGKILL), 256 + SIGKILL);
        grantor_client_await_close(&world.op); /* over TCP: all that it sent has arrived */
        for (size_t i = 0; i < RESOURCES; i++) {
            heard[i] = hear(&known[i]);
            answered += heard[i];
        }
        restart();
        for (size_t i = 0; i < RESOURCES; i++) {
            check(&known[i], heard[i]);
        }
    }
    assert_in_range(answered, 1, KILLS * RESOURCES - 1); /* some kills were early and some late */
}

static long long metric(const char *name)
{
    static char text[65536];
    char line[64];
    snprintf(line, sizeof line, "\n%s ", name);
    grantor_process_fetch(&world.server, "/metrics", text, sizeof text);
    const char *at = strstr(text, line);
    if (at == NULL) {
        fail_msg("%s is missing in: %s", name, text);
    }
    return atoll(at + strlen(line));
}

static void renewals_do_not_reach_the_disk(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    const long long appends = metric("aster_journal_appends_total");
    assert_true(appends >= 1);
    for (int i = 0; i < RENEWALS; i++) {
        assert_granted(
            grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RENEW, "catalog", epoch)));
    }
    assert_int_equal(metric("aster_journal_appends_total"), appends);
    assert_int_equal(metric("aster_journal_changes_total"), 1);
}

static void many_clients_share_a_sync(void **state)
{
    (void)state;
    uint64_t ids[RESOURCES];
    char name[16];
    for (size_t i = 0; i < RESOURCES; i++) {
        snprintf(name, sizeof name, "r%zu", i);
        ids[i] = grantor_client_acquire(i % 2 == 0 ? &world.a : &world.b, name, TTL_MS, 0);
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        assert_granted(grantor_client_decision(i % 2 == 0 ? &world.a : &world.b, ids[i]));
    }
    assert_int_equal(metric("aster_journal_changes_total"), RESOURCES);
    assert_true(metric("aster_journal_appends_total") < RESOURCES);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(what_a_killed_server_acknowledged_is_there_when_it_is_back),
        EACH(renewals_do_not_reach_the_disk),
        EACH(many_clients_share_a_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
