/* One thread, in order: tasks from others, timers, descriptors, and the end of each round. */
#include "support/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "platform/loop.h"

#define THREADS 4
#define TASKS 5000

static struct aster_loop *loop;

static int begin(void **state)
{
    (void)state;
    return aster_loop_create("test", &loop, NULL);
}

static int end(void **state)
{
    (void)state;
    aster_loop_destroy(loop);
    return 0;
}

struct numbered {
    struct aster_task task;
    unsigned thread;
    unsigned number;
};

static struct numbered numbered[THREADS][TASKS];
static unsigned next_number[THREADS]; /* only the loop's thread */
static unsigned ran;
static bool in_order = true;

static void count(struct aster_task *task)
{
    struct numbered *item = (struct numbered *)task;
    in_order = in_order && item->number == next_number[item->thread]++;
    ran++;
}

static void *post_all(void *argument)
{
    unsigned thread = *(unsigned *)argument;
    for (unsigned i = 0; i < TASKS; i++) {
        numbered[thread][i] = (struct numbered){{NULL, count}, thread, i};
        aster_loop_post(loop, &numbered[thread][i].task);
    }
    return NULL;
}

static aster_status is_current(void *argument)
{
    *(bool *)argument = aster_loop_is_current(loop);
    return ASTER_ERR_BUSY;
}

static void tasks_of_many_threads_all_run_each_threads_in_its_order(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned ids[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        ids[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &ids[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    bool current = false;
    assert_int_equal(aster_loop_call(loop, is_current, &current), ASTER_ERR_BUSY); /* behind all of them */
    assert_true(current);
    assert_false(aster_loop_is_current(loop));
    assert_int_equal(ran, THREADS * TASKS);
    assert_true(in_order);
}

/* ---- descriptors and rounds ---- */

static int pipes[2][2];
static struct aster_watch watches[2];
static atomic_uint readies;
static atomic_uint rounds;

static void remove_both(struct aster_watch *watch, uint32_t events)
{
    (void)watch;
    assert_true(events & EPOLLIN);
    atomic_fetch_add(&readies, 1);
    aster_loop_remove(loop, &watches[0]);
    aster_loop_remove(loop, &watches[1]);
}

static void end_of_round(struct aster_round *round, int64_t now_ns)
{
    (void)round;
    assert_true(now_ns == aster_loop_now_ns(loop));
    atomic_fetch_add(&rounds, 1);
}

static struct aster_round round_end = {NULL, end_of_round};

static aster_status watch_pipes(void *argument)
{
    (void)argument;
    aster_loop_round_add(loop, &round_end);
    for (unsigned i = 0; i < 2; i++) {
        watches[i] = (struct aster_watch){remove_both, pipes[i][0]};
        assert_int_equal(aster_loop_add(loop, &watches[i], EPOLLIN, NULL), ASTER_OK);
    }
    return ASTER_OK;
}

static aster_status nothing(void *argument)
{
    (void)argument;
    return ASTER_OK;
}

static aster_status stop_rounds(void *argument)
{
    (void)argument;
    aster_loop_round_remove(loop, &round_end);
    return ASTER_OK;
}

static void a_watch_removed_in_a_round_is_not_called_in_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pipe(pipes[i]), 0);
        assert_int_equal(write(pipes[i][1], "x", 1), 1); /* both are ready when the loop looks */
    }
    assert_int_equal(aster_loop_call(loop, watch_pipes, NULL), ASTER_OK);
    while (atomic_load(&readies) == 0) {
        aster_loop_call(loop, nothing, NULL);
    }
    aster_loop_call(loop, nothing, NULL);
    assert_int_equal(atomic_load(&readies), 1);
    assert_true(atomic_load(&rounds) > 0);
    aster_loop_call(loop, stop_rounds, NULL);
    for (unsigned i = 0; i < 2; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

/* ---- timers ---- */

static atomic_int fired;

static void fire(struct aster_timer *timer, int64_t now_ns)
{
    atomic_store(&fired, now_ns >= timer->at_ns ? 1 : -1);
}

static struct aster_timer timer = {.fire = fire};

static aster_status set_timer(void *argument)
{
    (void)argument;
    struct aster_timers *timers = aster_loop_timers(loop);
    assert_int_equal(aster_timers_reserve(timers, NULL), ASTER_OK);
    aster_timers_set(timers, &timer, aster_loop_now_ns(loop) + 20000000);
    return ASTER_OK;
}

static void an_idle_loop_wakes_for_its_timer_and_not_before(void **state)
{
    (void)state;
    assert_int_equal(aster_loop_call(loop, set_timer, NULL), ASTER_OK);
    while (atomic_load(&fired) == 0) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&fired), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks_of_many_threads_all_run_each_threads_in_its_order, begin, end),
        cmocka_unit_test_setup_teardown(a_watch_removed_in_a_round_is_not_called_in_it, begin, end),
        cmocka_unit_test_setup_teardown(an_idle_loop_wakes_for_its_timer_and_not_before, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
