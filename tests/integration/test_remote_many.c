/* Many leases of one process over one connection: renewals travel together; cancels race with grants. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/serializer.h"
#include "support/remote_grantor.h"
#include "support/requests.h"
#include "support/seed.h"

#define LEASES 1000
#define RACES 500 /* ASTER_POINTS=10000 for more, see scripts/soak */

static struct remote_grantor grantor;
static struct remote_client client;
static struct aster_error error;

static int open_all(void **state)
{
    (void)state;
    remote_grantor_init(&grantor, NULL);
    remote_grantor_start(&grantor, REMOTE_QUIC, 0);
    remote_client_init(&client);
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    remote_client_open(&client, &options);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    remote_client_fini(&client);
    remote_grantor_fini(&grantor);
    return 0;
}

static void a_thousand_leases_are_renewed_in_batches(void **state)
{
    (void)state;
    static struct aster_lease *leases[LEASES];
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 10000;
    options.renew_interval_ms = 500;
    for (unsigned i = 0; i < LEASES; i++) {
        char name[16];
        snprintf(name, sizeof name, "lease/%u", i);
        assert_int_equal(
            aster_lease_start(client.serializer, aster_text(name), aster_text(client.id), &options, &leases[i], &error),
            ASTER_OK);
    }
    for (unsigned i = 0; i < LEASES; i++) {
        assert_int_equal(aster_lease_wait_acquired(leases[i], 10000, NULL, &error), ASTER_OK);
    }
    while (atomic_load(&grantor.renewals) < 3 * LEASES) {
        usleep(5000);
    }
    for (unsigned i = 0; i < LEASES; i++) {
        struct aster_lease_report report;
        aster_lease_report_get(leases[i], &report);
        assert_int_equal(report.status, ASTER_LEASE_HELD);
        assert_int_equal(report.renew_errors, 0);
        assert_int_equal(report.epoch, 1);
        aster_lease_destroy(leases[i]);
    }
    unsigned singles = atomic_load(&grantor.requests) - LEASES;
    assert_true(atomic_load(&grantor.batches) + singles < 3 * LEASES / 4);
    assert_int_equal(atomic_load(&grantor.links), 1);
}

/* Whatever moment a cancel comes at, the handle is never HELD and the resource is free in the end. */
static void a_cancel_that_races_with_the_grant_leaves_nothing_held(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    options.wait_ms = 1000;
    const char *wanted = getenv("ASTER_POINTS");
    const unsigned races = wanted != NULL ? (unsigned)strtoul(wanted, NULL, 10) : RACES;
    unsigned seed = (unsigned)test_seed(1);
    for (unsigned i = 0; i < races; i++) {
        struct aster_lease *lease = NULL;
        struct aster_lease_report report;
        char name[16];
        snprintf(name, sizeof name, "race/%u", i);
        assert_int_equal(
            aster_lease_start(client.serializer, aster_text(name), aster_text(client.id), &options, &lease, &error),
            ASTER_OK);
        usleep((unsigned)rand_r(&seed) % 400);
        aster_lease_cancel(lease);
        aster_lease_report_get(lease, &report);
        if (report.status == ASTER_LEASE_HELD) { /* it was answered before */
            assert_int_equal(aster_lease_release(lease, 5000, NULL, &error), ASTER_OK);
        } else {
            assert_int_equal(report.status, ASTER_LEASE_NOT_GRANTED);
        }
        aster_lease_destroy(lease);
    }
    for (unsigned i = 0; i < races; i++) {
        char name[16];
        snprintf(name, sizeof name, "race/%u", i);
        do {
            assert_int_equal(aster_inspect(client.serializer, aster_text(name), &reply, &error), ASTER_OK);
        } while (reply.decision.snapshot.held); /* the background release ends long before the ttl of 30 s */
    }
    aster_reply_fini(&reply);
}

#define TAKEN 64 /* by the grantor at once, of this identity */

static unsigned others_asked(void)
{
    return atomic_load(&grantor.requests) - atomic_load(&grantor.renewals);
}

/* Waiting acquires may not use up what renewals need. */
static void no_more_is_out_than_the_grantor_takes_and_renewals_find_room(void **state)
{
    (void)state;
    static struct asked waiting[2 * TAKEN];
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct remote_client other;
    atomic_store(&grantor.in_flight_max, TAKEN);
    remote_client_init(&other);
    struct aster_grantor_options options = remote_client_options(&other, &grantor);
    remote_client_open(&other, &options);
    int64_t epoch = acquire_now(grantor.serializer, "held", client.id);
    int64_t own = acquire_now(grantor.serializer, "own", other.id);
    for (unsigned i = 0; i < 2 * TAKEN; i++) {
        ask(other.serializer, &waiting[i], op_acquire("held", other.id, 30000), 60000);
    }
    for (unsigned i = 0; i < 3; i++) { /* each is answered although nothing else is */
        const struct aster_operation renew = op_renew("own", other.id, own);
        assert_int_equal(aster_serializer_call(other.serializer, &renew, 10000, &reply, &error), ASTER_OK);
        assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    }
    while (others_asked() < TAKEN - TAKEN / 4) {
        usleep(1000);
    }
    usleep(20000); /* for those that should not be sent */
    assert_int_equal(others_asked(), TAKEN - TAKEN / 4);
    assert_int_equal(decide_now(grantor.serializer, op_release("held", client.id, epoch), NULL), ASTER_REASON_NONE);
    while (others_asked() <= TAKEN - TAKEN / 4) {
        usleep(1000); /* an answer makes room for the next */
    }
    aster_reply_fini(&reply);
    remote_client_fini(&other); /* which ends the rest */
    for (unsigned i = 0; i < 2 * TAKEN; i++) {
        assert_int_equal(waiting[i].answers, 1);
        asked_fini(&waiting[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thousand_leases_are_renewed_in_batches, open_all, close_all),
        cmocka_unit_test_setup_teardown(no_more_is_out_than_the_grantor_takes_and_renewals_find_room, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_cancel_that_races_with_the_grant_leaves_nothing_held, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
