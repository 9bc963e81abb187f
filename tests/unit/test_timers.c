/* Timers fire in the order of their instants, however they were set, moved and unset. */
#include "support/unit.h"

#include <stdlib.h>

#include "platform/timers.h"

#define COUNT 500

static struct aster_timers timers;
static struct aster_timer all[COUNT];
static int64_t fired_at[COUNT];
static size_t fired;
static int64_t last_fired;

static void fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    assert_true(timer->at_ns >= last_fired);
    assert_int_equal(timer->slot, 0);
    last_fired = timer->at_ns;
    fired_at[timer - all] = timer->at_ns;
    fired++;
}

static int begin(void **state)
{
    (void)state;
    memset(all, 0, sizeof all);
    memset(fired_at, 0, sizeof fired_at);
    fired = 0;
    last_fired = INT64_MIN;
    for (size_t i = 0; i < COUNT; i++) {
        all[i].fire = fire;
        assert_int_equal(aster_timers_reserve(&timers, NULL), ASTER_OK);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    aster_timers_fini(&timers);
    return 0;
}

static void what_is_set_moved_and_unset_at_random_fires_in_order(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    int64_t expected[COUNT] = {0}; /* 0 = not set */
    for (unsigned step = 0; step < 20000; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t index = random % COUNT;
        if (random >> 60 == 0) {
            aster_timers_unset(&timers, &all[index]);
            expected[index] = 0;
        } else {
            expected[index] = 1 + (int64_t)(random >> 32) % 1000;
            aster_timers_set(&timers, &all[index], expected[index]);
        }
    }
    size_t set = 0;
    int64_t earliest = INT64_MAX;
    for (size_t i = 0; i < COUNT; i++) {
        set += expected[i] != 0;
        earliest = expected[i] != 0 && expected[i] < earliest ? expected[i] : earliest;
    }
    assert_int_equal(aster_timers_next(&timers), earliest);
    aster_timers_fire(&timers, 500);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(fired_at[i], expected[i] <= 500 ? expected[i] : 0);
    }
    aster_timers_fire(&timers, 1000);
    assert_int_equal(fired, set);
    assert_int_equal(aster_timers_next(&timers), INT64_MAX);
}

static unsigned again;

static void set_to_now(struct aster_timer *timer, int64_t now_ns)
{
    again++;
    aster_timers_set(&timers, timer, now_ns);
}

static void a_timer_that_sets_itself_to_now_does_not_hold_the_loop(void **state)
{
    (void)state;
    all[0].fire = set_to_now;
    again = 0;
    aster_timers_set(&timers, &all[0], 10);
    aster_timers_fire(&timers, 10);
    assert_int_equal(again, 1);
    aster_timers_fire(&timers, 10);
    assert_int_equal(again, 2);
    aster_timers_unset(&timers, &all[0]);
    aster_timers_unset(&timers, &all[0]); /* twice is legal */
    assert_int_equal(aster_timers_next(&timers), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_set_moved_and_unset_at_random_fires_in_order, begin, end),
        cmocka_unit_test_setup_teardown(a_timer_that_sets_itself_to_now_does_not_hold_the_loop, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
