/* Releasing under faults, and the events that tell how a lease ended. */
#include <poll.h>
#include <stdlib.h>

#include "support/lease_world.h"

static const struct fault none = {FAULT_NONE, 0, 0};

static bool is_readable(int fd)
{
    struct pollfd poller = {fd, POLLIN, 0};
    return poll(&poller, 1, 0) == 1;
}

/* Row 26: a renewal in flight does not come back to life after the release. */
static void a_release_wins_over_a_renewal_in_flight(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RENEW, (struct fault){FAULT_DELAY_REPLY, 0, 2000});
    fake_clock_advance_ms(world->clock, 4000);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
    int sent = faulty_serializer_count(world->path, ASTER_OP_RENEW);
    fake_clock_advance_ms(world->clock, 20000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RENEW), sent);
    assert_false(lease_world_row(world).held);
    aster_lease_destroy(a);
}

/* Rows 35, 83: the reply is lost; the same id is repeated until the answer is definitive. */
static void a_lost_reply_of_a_release_is_repeated_until_it_is_definitive(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RELEASE, (struct fault){FAULT_LOSE_REPLY, 0, 0});
    assert_int_equal(aster_lease_release(a, 1, NULL, NULL), ASTER_ERR_TIMEOUT);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASE_PENDING);
    assert_null(aster_lease_fence(a));
    assert_int_equal(lease_world_row(world).epoch, 2);
    assert_int_equal(lease_world_grant_to(world, "A"), 3);
    faulty_serializer_always(world->path, ASTER_OP_RELEASE, none);
    fake_clock_advance_ms(world->clock, 5000);
    enum aster_lease_status status = lease_world_report(a).status;
    assert_true(status == ASTER_LEASE_RELEASED || status == ASTER_LEASE_FENCED);
    assert_int_equal(lease_world_row(world).epoch, 3); /* the newer lease of the same holder is untouched */
    assert_true(lease_world_row(world).held);
    aster_lease_destroy(a);
}

static void a_release_whose_reply_was_lost_once_succeeds_when_repeated(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, ASTER_OP_RELEASE, (struct fault){FAULT_LOSE_REPLY, 0, 0});
    assert_int_equal(aster_lease_release(a, 1, NULL, NULL), ASTER_ERR_TIMEOUT);
    faulty_serializer_always(world->path, ASTER_OP_RELEASE, none);
    fake_clock_advance_ms(world->clock, 100);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_RELEASED);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(lease_world_row(world).epoch, 2);
    aster_reply_fini(&reply);
    aster_lease_destroy(a);
}

/* Row 40: a definitive denial is not retried. */
static void a_release_after_a_takeover_ends_with_one_message(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    lease_world_revoke(world);
    assert_int_equal(lease_world_grant_to(world, "B"), 3);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_lease_release(a, 1000, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.outcome, ASTER_DENIED);
    assert_int_equal(reply.decision.reason, ASTER_REASON_EPOCH_MISMATCH);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_FENCED);
    fake_clock_advance_ms(world->clock, 20000);
    assert_int_equal(faulty_serializer_count(world->path, ASTER_OP_RELEASE), 1);
    assert_int_equal(lease_world_row(world).epoch, 3);
    aster_reply_fini(&reply);
    aster_lease_destroy(a);
}

/* Row 133: a black hole. */
static void a_release_into_a_black_hole_returns_at_its_deadline_and_the_row_lapses(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, (struct fault){FAULT_HANG, 0, 0});
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_lease_release(a, 20, NULL, &error), ASTER_ERR_TIMEOUT);
    assert_non_null(strstr(error.message, "background"));
    fake_clock_advance_ms(world->clock, 10000);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_int_equal(lease_world_grant_to(world, "B"), 2);
    aster_lease_destroy(a);
}

static void releasing_a_lost_lease_frees_the_row_but_it_stays_lost(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    fake_clock_leap_ms(world->clock, 9500);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_true(lease_world_row(world).held);
    assert_int_equal(aster_lease_release(a, 1000, NULL, NULL), ASTER_OK);
    assert_int_equal(lease_world_report(a).status, ASTER_LEASE_LOST);
    assert_false(lease_world_row(world).held);
    aster_lease_destroy(a);
}

struct heard {
    enum aster_lease_status statuses[8];
    int count;
    bool release_inside;
    bool destroy_inside;
    enum aster_lease_status destroy_at;
    aster_status released;
};

static void hear(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    struct heard *heard = user;
    assert_in_range(heard->count, 0, 7);
    heard->statuses[heard->count++] = status;
    if (heard->release_inside && status == ASTER_LEASE_HELD) {
        heard->released = aster_lease_release(lease, 1000, NULL, NULL);
    }
    if (heard->destroy_inside && status == heard->destroy_at) {
        aster_lease_destroy(lease);
    }
}

/* Row 7: told once, not later than the limit, although no reply ever comes. */
static void a_loss_is_told_once_and_in_time(void **state)
{
    struct lease_world *world = *state;
    struct heard heard = {0};
    world->options.on_status = hear;
    world->options.user = &heard;
    struct aster_lease *a = lease_world_acquire(world, "A");
    int fd = aster_lease_fd(a);
    assert_true(fd >= 0);
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, (struct fault){FAULT_BLACK_HOLE, 0, 0});
    fake_clock_advance_ms(world->clock, 8994);
    assert_int_equal(heard.count, 1);
    assert_false(is_readable(fd));
    fake_clock_advance_ms(world->clock, 1);
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.statuses[0], ASTER_LEASE_HELD);
    assert_int_equal(heard.statuses[1], ASTER_LEASE_LOST);
    assert_true(is_readable(fd));
    fake_clock_advance_ms(world->clock, 60000);
    assert_int_equal(heard.count, 2);
    assert_true(is_readable(fd)); /* and stays so */
    aster_lease_destroy(a);
}

static void a_descriptor_made_after_the_end_is_readable_at_once(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *a = lease_world_acquire(world, "A");
    aster_lease_drop(a);
    assert_true(is_readable(aster_lease_fd(a)));
    aster_lease_destroy(a);
}

/* Row 134. */
static void a_callback_may_release_its_own_lease(void **state)
{
    struct lease_world *world = *state;
    struct heard heard = {.release_inside = true, .released = ASTER_ERR_IO};
    world->options.on_status = hear;
    world->options.user = &heard;
    struct aster_lease *a = lease_world_acquire(world, "A");
    assert_int_equal(heard.released, ASTER_OK);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.statuses[1], ASTER_LEASE_RELEASE_PENDING);
    assert_int_equal(heard.statuses[2], ASTER_LEASE_RELEASED);
    aster_lease_destroy(a);
}

static void a_callback_may_destroy_its_own_lease(void **state)
{
    struct lease_world *world = *state;
    struct heard heard = {.destroy_inside = true, .destroy_at = ASTER_LEASE_LOST};
    world->options.on_status = hear;
    world->options.user = &heard;
    assert_non_null(lease_world_acquire(world, "A"));
    fake_clock_leap_ms(world->clock, 20000);
    assert_int_equal(heard.count, 2);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
}

static void a_callback_may_destroy_a_handle_that_its_acquire_still_waits_for(void **state)
{
    struct lease_world *world = *state;
    struct heard heard = {.destroy_inside = true, .destroy_at = ASTER_LEASE_HELD};
    struct aster_lease *lease = NULL;
    world->options.on_status = hear;
    world->options.user = &heard;
    assert_int_equal(
        aster_lease_acquire(world->store, aster_text("r"), aster_text("A"), &world->options, &lease, NULL, NULL),
        ASTER_ERR_CANCELLED);
    assert_null(lease);
    assert_int_equal(heard.count, 1);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
}

static void a_blocking_acquire_that_is_denied_tells_nobody_about_a_handle(void **state)
{
    struct lease_world *world = *state;
    struct heard heard = {.destroy_inside = true, .destroy_at = ASTER_LEASE_NOT_GRANTED};
    assert_int_equal(lease_world_grant_to(world, "B"), 1);
    world->options.on_status = hear;
    world->options.user = &heard;
    assert_null(lease_world_acquire(world, "A"));
    assert_int_equal(heard.count, 0);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
}

static void what_was_never_initialised_is_refused(void **state)
{
    struct lease_world *world = *state;
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    const struct aster_lease_options zero = {.ttl_ms = 5000};
    assert_int_equal(aster_lease_acquire(world->store, aster_text("r"), aster_text("A"), &zero, &lease, NULL, &error),
                     ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "ASTER_LEASE_OPTIONS_INIT"));
    assert_int_equal(aster_lease_acquire(NULL, aster_text("r"), aster_text("A"), NULL, &lease, NULL, &error),
                     ASTER_ERR_INVALID);
    const struct aster_memory_options memory = {.stripes = 1};
    struct aster_serializer *serializer = NULL;
    assert_int_equal(aster_memory_open(&memory, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "ASTER_MEMORY_OPTIONS_INIT"));
}

/* Row 131: rounds of acquire and release with a slow store leave nothing behind. */
static void rounds_with_a_slow_store_leave_no_handle_and_no_timer(void **state)
{
    struct lease_world *world = *state;
    faulty_serializer_always(world->path, (enum aster_operation_kind)0, (struct fault){FAULT_DELAY_REPLY, 0, 100});
    for (int i = 0; i < 10000; i++) {
        struct aster_lease *lease = NULL;
        assert_int_equal(aster_lease_start(faulty_serializer_serializer(world->path), aster_text("r"), aster_text("A"),
                                           &world->options, &lease, NULL),
                         ASTER_OK);
        fake_clock_advance_ms(world->clock, 100);
        assert_int_equal(lease_world_report(lease).status, ASTER_LEASE_HELD);
        assert_int_equal(aster_lease_release(lease, 0, NULL, NULL), ASTER_ERR_TIMEOUT);
        fake_clock_advance_ms(world->clock, 100);
        assert_int_equal(lease_world_report(lease).status, ASTER_LEASE_RELEASED);
        aster_lease_destroy(lease);
        assert_int_equal(aster_runtime_handles(world->runtime), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEASE_TEST(a_release_wins_over_a_renewal_in_flight),
        LEASE_TEST(a_lost_reply_of_a_release_is_repeated_until_it_is_definitive),
        LEASE_TEST(a_release_whose_reply_was_lost_once_succeeds_when_repeated),
        LEASE_TEST(a_release_after_a_takeover_ends_with_one_message),
        LEASE_TEST(a_release_into_a_black_hole_returns_at_its_deadline_and_the_row_lapses),
        LEASE_TEST(releasing_a_lost_lease_frees_the_row_but_it_stays_lost),
        LEASE_TEST(a_loss_is_told_once_and_in_time),
        LEASE_TEST(a_descriptor_made_after_the_end_is_readable_at_once),
        LEASE_TEST(a_callback_may_release_its_own_lease),
        LEASE_TEST(a_callback_may_destroy_its_own_lease),
        LEASE_TEST(a_callback_may_destroy_a_handle_that_its_acquire_still_waits_for),
        LEASE_TEST(a_blocking_acquire_that_is_denied_tells_nobody_about_a_handle),
        LEASE_TEST(what_was_never_initialised_is_refused),
        LEASE_TEST(rounds_with_a_slow_store_leave_no_handle_and_no_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
