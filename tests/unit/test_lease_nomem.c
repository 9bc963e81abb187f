/* Out of memory at the n-th call: an acquire fails cleanly, a held lease survives. Straight at the memory serializer,
 * which gets its memory through the same door. */
#include <stdlib.h>

#include "base/alloc.h"
#include "support/lease_world.h"

#define CALLS_MAX 200

static aster_status acquire(struct lease_world *world, struct aster_lease **lease, struct aster_error *error)
{
    return aster_lease_acquire(world->store, aster_text("r"), aster_text("A"), &world->options, lease, NULL, error);
}

static struct aster_lease *hold(struct lease_world *world)
{
    struct aster_lease *lease = NULL;
    assert_int_equal(acquire(world, &lease, NULL), ASTER_OK);
    assert_non_null(lease);
    return lease;
}

/* Every number of successful calls, until there are enough. The seam refuses all later calls, so the row may only be
 * given back once there is memory again. */
static void an_acquire_without_memory_says_so_and_leaves_neither_a_handle_nor_a_held_row(void **state)
{
    struct lease_world *world = *state;
    long calls = 0;
    struct aster_lease *lease = NULL;
    for (; calls < CALLS_MAX && lease == NULL; calls++) {
        struct aster_error error = ASTER_ERROR_INIT;
        aster_alloc_fail_after(calls);
        aster_status status = acquire(world, &lease, &error);
        aster_alloc_fail_after(-1);
        if (status == ASTER_OK) {
            break;
        }
        assert_int_equal(status, ASTER_ERR_NOMEM);
        assert_int_equal(error.status, ASTER_ERR_NOMEM);
        assert_true(error.message[0] != '\0');
        assert_null(lease);
        fake_clock_advance_ms(world->clock, 1000);
        assert_int_equal(aster_runtime_handles(world->runtime), 0);
        assert_false(lease_world_row(world).held);
    }
    assert_non_null(lease);
    assert_in_range(calls, 3, CALLS_MAX - 1); /* the handle, the row and the answer at least */
    assert_non_null(aster_lease_fence(lease));
    aster_lease_destroy(lease);
}

/* The row is known already, so that the answer is what there is no memory for: then the acquire may have been applied,
 * and is found out under the same id once there is memory. */
static void an_answer_without_memory_is_asked_for_again_or_its_grant_released(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *first = hold(world);
    assert_int_equal(aster_lease_release(first, 0, NULL, NULL), ASTER_OK);
    aster_lease_destroy(first);
    bool found_out = false;
    bool released = false;
    for (long calls = 0; calls < 6; calls++) {
        struct aster_lease *lease = NULL;
        aster_alloc_fail_after(calls);
        aster_status status =
            aster_lease_start(world->store, aster_text("r"), aster_text("A"), &world->options, &lease, NULL);
        bool pending = status == ASTER_OK && lease_world_report(lease).status == ASTER_LEASE_ACQUIRING;
        aster_alloc_fail_after(-1);
        if (status != ASTER_OK) {
            assert_int_equal(status, ASTER_ERR_NOMEM);
            continue;
        }
        fake_clock_advance_ms(world->clock, 1000);
        struct aster_lease_report report = lease_world_report(lease);
        if (report.status == ASTER_LEASE_HELD) {
            found_out = found_out || pending;
            assert_int_equal(aster_lease_fence(lease)->epoch, lease_world_row(world).epoch);
            assert_int_equal(aster_lease_release(lease, 0, NULL, NULL), ASTER_OK);
        } else {
            released = true;
            assert_int_equal(report.status, ASTER_LEASE_NOT_GRANTED);
            assert_int_equal(aster_lease_wait_acquired(lease, 0, NULL, NULL), ASTER_ERR_NOMEM);
        }
        assert_false(lease_world_row(world).held);
        aster_lease_destroy(lease);
        assert_int_equal(aster_runtime_handles(world->runtime), 0);
    }
    assert_true(found_out);
    assert_true(released);
}

static void a_held_lease_survives_a_while_without_memory(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = hold(world);
    for (long calls = 0; calls < 10; calls++) {
        aster_alloc_fail_after(calls);
        fake_clock_advance_ms(world->clock, 5000);
        aster_alloc_fail_after(-1);
        fake_clock_advance_ms(world->clock, 3000);
        assert_int_equal(lease_world_report(a).status, ASTER_LEASE_HELD);
        assert_int_equal(aster_lease_fence(a)->epoch, 1);
    }
    aster_lease_destroy(a);
}

static void a_lease_without_memory_for_renewals_stops_at_its_limit(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = hold(world);
    aster_alloc_fail_after(0);
    fake_clock_advance_ms(world->clock, 9000);
    assert_null(aster_lease_fence(a));
    struct aster_lease_report report = lease_world_report(a);
    aster_alloc_fail_after(-1);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_true(report.renew_errors > 0);
    aster_lease_destroy(a);
}

static void a_release_without_memory_is_repeated_until_it_is_known(void **state)
{
    struct lease_world *world = *state;
    for (long calls = 0; calls < 10; calls++) {
        struct aster_lease *a = hold(world);
        aster_alloc_fail_after(calls);
        aster_status status = aster_lease_release(a, 0, NULL, NULL);
        aster_alloc_fail_after(-1);
        assert_true(status == ASTER_OK || status == ASTER_ERR_TIMEOUT);
        assert_null(aster_lease_fence(a));
        fake_clock_advance_ms(world->clock, 1000);
        assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
        assert_false(lease_world_row(world).held);
        aster_lease_destroy(a);
    }
}

static void a_runtime_without_memory_is_not_made(void **state)
{
    struct lease_world *world = *state;
    struct aster_runtime_options options = ASTER_RUNTIME_OPTIONS_INIT;
    options.clock = fake_clock_clock(world->clock);
    struct aster_runtime *runtime = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_alloc_fail_after(0);
    aster_status status = aster_runtime_create(&options, &runtime, &error);
    aster_alloc_fail_after(-1);
    assert_int_equal(status, ASTER_ERR_NOMEM);
    assert_int_equal(error.status, ASTER_ERR_NOMEM);
    assert_null(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(an_acquire_without_memory_says_so_and_leaves_neither_a_handle_nor_a_held_row),
        LEASE_TEST(an_answer_without_memory_is_asked_for_again_or_its_grant_released),
        LEASE_TEST(a_held_lease_survives_a_while_without_memory),
        LEASE_TEST(a_lease_without_memory_for_renewals_stops_at_its_limit),
        LEASE_TEST(a_release_without_memory_is_repeated_until_it_is_known),
        LEASE_TEST(a_runtime_without_memory_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
