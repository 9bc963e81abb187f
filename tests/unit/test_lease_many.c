/* Many handles on one runtime, over the memory serializer and a virtual clock. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "base/checked.h"
#include "support/fake_clock.h"
#include "support/unit.h"

#define MANY 50000

struct crowd {
    struct fake_clock *clock;
    struct aster_serializer *store;
    struct aster_runtime *runtime;
    struct aster_lease_options options;
    struct aster_lease *leases[MANY];
    size_t count;
};

static int set_up(void **state)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    crowd->clock = fake_clock_create();
    struct aster_memory_options memory = ASTER_MEMORY_OPTIONS_INIT;
    memory.clock = fake_clock_clock(crowd->clock);
    assert_int_equal(aster_memory_open(&memory, &crowd->store, NULL), ASTER_OK);
    struct aster_runtime_options options = ASTER_RUNTIME_OPTIONS_INIT;
    options.clock = memory.clock;
    options.handles_max = MANY;
    assert_int_equal(aster_runtime_create(&options, &crowd->runtime, NULL), ASTER_OK);
    crowd->options = (struct aster_lease_options)ASTER_LEASE_OPTIONS_INIT;
    crowd->options.runtime = crowd->runtime;
    *state = crowd;
    return 0;
}

static int tear_down(void **state)
{
    struct crowd *crowd = *state;
    for (size_t i = 0; i < crowd->count; i++) {
        aster_lease_destroy(crowd->leases[i]);
    }
    assert_int_equal(aster_runtime_handles(crowd->runtime), 0);
    aster_runtime_destroy(crowd->runtime);
    aster_serializer_destroy(crowd->store);
    fake_clock_destroy(crowd->clock);
    free(crowd);
    return 0;
}

static aster_status acquire(struct crowd *crowd, size_t number, struct aster_error *error)
{
    char name[32];
    int size = snprintf(name, sizeof name, "resource/%06zu", number);
    struct aster_bytes resource = {name, (size_t)size};
    struct aster_lease *lease = NULL;
    aster_status status =
        aster_lease_acquire(crowd->store, resource, aster_text("A"), &crowd->options, &lease, NULL, error);
    if (status == ASTER_OK) {
        assert_non_null(lease);
        crowd->leases[crowd->count++] = lease;
    }
    return status;
}

/* Row 20. Beyond the limit an acquire is refused; up to it nothing expires. */
static void fifty_thousand_leases_of_twenty_seconds_are_all_held_after_two_minutes(void **state)
{
    struct crowd *crowd = *state;
    crowd->options.ttl_ms = 20000;
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(acquire(crowd, i, NULL), ASTER_OK);
    }
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(acquire(crowd, MANY, &error), ASTER_ERR_LIMIT);
    assert_non_null(strstr(error.message, "handles_max is 50000"));
    fake_clock_advance_ms(crowd->clock, 120000);
    for (size_t i = 0; i < MANY; i++) {
        struct aster_lease_report report;
        aster_lease_report_get(crowd->leases[i], &report);
        assert_int_equal(report.status, ASTER_LEASE_HELD);
        assert_int_equal(report.epoch, 1);
        assert_int_equal(report.renew_errors, 0);
        assert_in_range(report.renewals, 17, 18);
        assert_non_null(aster_lease_fence(crowd->leases[i]));
    }
}

/* Row 5. The row's remaining time never falls below what two missed intervals would leave. */
static void no_lease_waits_for_its_renewal_because_of_fifty_others(void **state)
{
    struct crowd *crowd = *state;
    crowd->options.ttl_ms = 10000;
    crowd->options.renew_interval_ms = 3000;
    for (size_t i = 0; i < 51; i++) {
        assert_int_equal(acquire(crowd, i, NULL), ASTER_OK);
        fake_clock_advance_ms(crowd->clock, 37);
    }
    for (int second = 0; second < 300; second++) {
        fake_clock_advance_ms(crowd->clock, 1000);
        for (size_t i = 0; i < 51; i++) {
            struct aster_lease_report report;
            aster_lease_report_get(crowd->leases[i], &report);
            assert_int_equal(report.status, ASTER_LEASE_HELD);
            assert_true(report.remaining_ns >= 5000 * ASTER_NS_PER_MS);
        }
    }
}

/* Row 134. Asking costs no request and no wait. */
static void asking_ten_thousand_times_while_renewing_changes_nothing(void **state)
{
    struct crowd *crowd = *state;
    crowd->options.ttl_ms = 10000;
    assert_int_equal(acquire(crowd, 0, NULL), ASTER_OK);
    int fd = aster_lease_fd(crowd->leases[0]);
    for (int i = 0; i < 10000; i++) {
        struct aster_lease_report report;
        assert_int_equal(aster_lease_fd(crowd->leases[0]), fd);
        aster_lease_report_get(crowd->leases[0], &report);
        assert_int_equal(report.status, ASTER_LEASE_HELD);
        assert_int_equal(report.renewals, i / 333);
        fake_clock_advance_ns(crowd->clock, 10010010);
    }
    struct pollfd poller = {fd, POLLIN, 0};
    assert_int_equal(poll(&poller, 1, 0), 0);
}

/* Row 118. */
static void a_thousand_leases_of_one_holder_are_all_free_after_their_release(void **state)
{
    struct crowd *crowd = *state;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(acquire(crowd, i, NULL), ASTER_OK);
    }
    for (size_t i = 0; i < 1000; i++) {
        struct aster_reply reply = ASTER_REPLY_INIT;
        assert_int_equal(aster_lease_release(crowd->leases[i], 0, &reply, NULL), ASTER_OK);
        assert_int_equal(reply.decision.outcome, ASTER_GRANTED);
        assert_false(reply.decision.snapshot.held);
        aster_reply_fini(&reply);
    }
}

#define CROWD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CROWD_TEST(fifty_thousand_leases_of_twenty_seconds_are_all_held_after_two_minutes),
        CROWD_TEST(no_lease_waits_for_its_renewal_because_of_fifty_others),
        CROWD_TEST(asking_ten_thousand_times_while_renewing_changes_nothing),
        CROWD_TEST(a_thousand_leases_of_one_holder_are_all_free_after_their_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
