/* A handle over the memory serializer on a virtual clock: hold, limit, takeover, release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "support/fake_clock.h"

struct world {
    struct fake_clock *clock;
    struct aster_serializer *serializer;
    struct aster_runtime *runtime;
    struct aster_lease_options options;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    world->clock = fake_clock_create();
    struct aster_memory_options memory = ASTER_MEMORY_OPTIONS_INIT;
    memory.clock = fake_clock_clock(world->clock);
    assert_int_equal(aster_memory_open(&memory, &world->serializer, NULL), ASTER_OK);
    struct aster_runtime_options options = ASTER_RUNTIME_OPTIONS_INIT;
    options.clock = memory.clock;
    assert_int_equal(aster_runtime_create(&options, &world->runtime, NULL), ASTER_OK);
    world->options = (struct aster_lease_options)ASTER_LEASE_OPTIONS_INIT;
    world->options.ttl_ms = 10000;
    world->options.renew_interval_ms = 3000;
    world->options.margin_ms = 1000;
    world->options.runtime = world->runtime;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
    aster_runtime_destroy(world->runtime);
    aster_serializer_destroy(world->serializer);
    fake_clock_destroy(world->clock);
    free(world);
    return 0;
}

static struct aster_lease *acquire(struct world *world, const char *holder)
{
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_lease_acquire(world->serializer, aster_text("r"), aster_text(holder), &world->options,
                                              &lease, NULL, &error);
    if (status != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return lease;
}

static struct aster_lease_report report_of(const struct aster_lease *lease)
{
    struct aster_lease_report report;
    aster_lease_report_get(lease, &report);
    return report;
}

static void a_live_holder_renews_and_keeps_its_epoch_for_ten_ttl(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    assert_non_null(a);
    for (int i = 0; i < 100; i++) {
        fake_clock_advance_ms(world->clock, 1000);
        const struct aster_fence *fence = aster_lease_fence(a);
        assert_non_null(fence);
        assert_int_equal(fence->epoch, 1);
        assert_null(acquire(world, "B"));
    }
    assert_int_equal(report_of(a).renewals, 33);
    aster_lease_destroy(a);
}

static void a_dropped_lease_lapses_and_the_next_one_is_granted_at_its_ttl(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    aster_lease_destroy(a);
    fake_clock_advance_ms(world->clock, 9999);
    assert_null(acquire(world, "B"));
    fake_clock_advance_ms(world->clock, 1);
    struct aster_lease *b = acquire(world, "B");
    assert_non_null(b);
    assert_int_equal(aster_lease_fence(b)->epoch, 2);
    aster_lease_destroy(b);
}

static void a_released_lease_is_free_at_once_and_supplies_no_fence(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_null(aster_lease_fence(a));
    assert_int_equal(report_of(a).status, ASTER_LEASE_RELEASED);
    struct aster_lease *b = acquire(world, "B");
    assert_int_equal(aster_lease_fence(b)->epoch, 3);
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

static void a_holder_that_was_suspended_supplies_no_fence_and_is_lost_by_a_clock_jump(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    fake_clock_leap_ms(world->clock, 3600000);
    assert_null(aster_lease_fence(a));
    assert_int_equal(report_of(a).status, ASTER_LEASE_LOST);
    assert_int_equal(report_of(a).reason, ASTER_LEASE_REASON_CLOCK_JUMP);
    aster_lease_destroy(a);
    struct aster_lease *again = acquire(world, "A");
    assert_int_equal(aster_lease_fence(again)->epoch, 2);
    aster_lease_destroy(again);
}

static void a_revoked_lease_is_fenced_by_the_next_renewal(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_revoke(world->serializer, aster_text("r"), aster_text("op"), 1, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.outcome, ASTER_GRANTED);
    aster_reply_fini(&reply);
    fake_clock_advance_ms(world->clock, 3000);
    assert_null(aster_lease_fence(a));
    assert_int_equal(report_of(a).status, ASTER_LEASE_FENCED);
    assert_int_equal(report_of(a).reason, ASTER_LEASE_REASON_REVOKED);
    aster_lease_destroy(a);
}

static void a_waiter_is_granted_when_the_holder_releases(void **state)
{
    struct world *world = *state;
    struct aster_lease *a = acquire(world, "A");
    world->options.wait_ms = 60000;
    struct aster_lease *b = NULL;
    assert_int_equal(aster_lease_start(world->serializer, aster_text("r"), aster_text("B"), &world->options, &b, NULL),
                     ASTER_OK);
    fake_clock_advance_ms(world->clock, 20000);
    assert_int_equal(report_of(b).status, ASTER_LEASE_ACQUIRING);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(report_of(b).status, ASTER_LEASE_HELD);
    assert_int_equal(aster_lease_fence(b)->epoch, 3);
    assert_true(report_of(b).remaining_ns > INT64_C(8900000000));
    aster_lease_destroy(a);
    aster_lease_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_live_holder_renews_and_keeps_its_epoch_for_ten_ttl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dropped_lease_lapses_and_the_next_one_is_granted_at_its_ttl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_released_lease_is_free_at_once_and_supplies_no_fence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_holder_that_was_suspended_supplies_no_fence_and_is_lost_by_a_clock_jump, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_revoked_lease_is_fenced_by_the_next_renewal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_waiter_is_granted_when_the_holder_releases, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
