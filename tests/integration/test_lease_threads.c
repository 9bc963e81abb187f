/* The handle on real threads and the real clock: stopped processes, a crowded machine, rivals, a serializer that hangs.
 * Bounds are generous; what must never happen is checked at every look. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "aster/sys/serializer.h"
#include "base/checked.h"
#include "base/error.h"
#include "support/unit.h"

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static struct aster_serializer *open_memory(void)
{
    struct aster_serializer *store = NULL;
    assert_int_equal(aster_memory_open(NULL, &store, NULL), ASTER_OK);
    return store;
}

static struct aster_lease *hold(struct aster_serializer *store, const char *holder, int64_t ttl_ms)
{
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = ttl_ms;
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_lease_acquire(store, aster_text("r"), aster_text(holder), &options, &lease, NULL, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return lease;
}

#define STOPPED_TTL_MS 1500

/* In the child: hold, tell so, and look at the fence first thing after a gap in time that is longer than the lease. */
static void hold_and_be_stopped(int told, int answer)
{
    struct aster_serializer *store = open_memory();
    struct aster_lease *lease = hold(store, "stopped", STOPPED_TTL_MS);
    char before = lease != NULL && aster_lease_fence(lease) != NULL ? 'H' : '-';
    if (write(told, &before, 1) != 1) {
        _exit(1);
    }
    int64_t last_ns = now_ns();
    const struct aster_fence *fence = NULL;
    for (int64_t gap_ns = 0; gap_ns < STOPPED_TTL_MS * ASTER_NS_PER_MS;) {
        int64_t at_ns = now_ns();
        fence = aster_lease_fence(lease);
        gap_ns = at_ns - last_ns;
        last_ns = at_ns;
    }
    struct aster_lease_report report;
    aster_lease_report_get(lease, &report);
    char after = fence == NULL && report.status == ASTER_LEASE_LOST ? 'N' : 'F';
    _exit(write(answer, &after, 1) == 1 ? 0 : 1);
}

static char read_one(int fd)
{
    char byte = 0;
    ssize_t got;
    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? byte : '?';
}

static void a_process_stopped_past_its_ttl_finds_no_fence_when_it_goes_on(void **state)
{
    (void)state;
    int told[2];
    int answer[2];
    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(answer), 0);
    pid_t child = fork(); /* before this process has any thread */
    assert_true(child >= 0);
    if (child == 0) {
        hold_and_be_stopped(told[1], answer[1]);
    }
    assert_int_equal(read_one(told[0]), 'H');
    sleep_ms(600); /* long enough for a renewal */
    assert_int_equal(kill(child, SIGSTOP), 0);
    sleep_ms(STOPPED_TTL_MS + 500);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(read_one(answer[0]), 'N');
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 2; i++) {
        close(told[i]);
        close(answer[i]);
    }
}

#define BUSY_THREADS 200
#define BUSY_MS 3000
#define BUSY_TTL_MS 1000

static atomic_bool busy_stop;
static pthread_barrier_t busy_start;

static void *be_busy(void *unused)
{
    pthread_barrier_wait(&busy_start);
    volatile uint64_t work = 0;
    while (!atomic_load_explicit(&busy_stop, memory_order_relaxed)) {
        work = work * 31 + 7;
    }
    return unused;
}

/* Row 22. Whether the lease survives is the scheduler's choice; that no fence outlives it is not. */
static void two_hundred_busy_threads_never_make_a_fence_outlive_its_limit(void **state)
{
    (void)state;
    struct aster_serializer *store = open_memory();
    struct aster_lease *a = hold(store, "A", BUSY_TTL_MS);
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = BUSY_TTL_MS;
    options.wait_ms = 60000;
    struct aster_lease *rival = NULL;
    assert_int_equal(aster_lease_start(store, aster_text("r"), aster_text("B"), &options, &rival, NULL), ASTER_OK);
    static pthread_t threads[BUSY_THREADS];
    atomic_store(&busy_stop, false);
    pthread_barrier_init(&busy_start, NULL, BUSY_THREADS + 1);
    for (size_t i = 0; i < BUSY_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
    }
    pthread_barrier_wait(&busy_start);
    int64_t end_ns = now_ns() + BUSY_MS * ASTER_NS_PER_MS;
    do {
        bool rival_held = aster_lease_fence(rival) != NULL;
        int64_t before_ns = now_ns();
        bool held = aster_lease_fence(a) != NULL;
        struct aster_lease_report report;
        aster_lease_report_get(a, &report);
        assert_false(held && rival_held); /* granted before this one was asked */
        assert_false(held && report.limit_ns <= before_ns);
        /* A renewal that was answered in time may only be entered between the two looks. */
        bool renewed_between = report.status == ASTER_LEASE_HELD && report.limit_ns > before_ns;
        assert_true(held || renewed_between || report.status == ASTER_LEASE_LOST ||
                    report.status == ASTER_LEASE_FENCED);
    } while (now_ns() < end_ns);
    atomic_store(&busy_stop, true);
    for (size_t i = 0; i < BUSY_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&busy_start);
    aster_lease_destroy(a);
    aster_lease_destroy(rival);
    aster_serializer_destroy(store);
}

#define RIVALS 6
#define RIVAL_MS 2000
#define RESOURCES 3

struct rival {
    pthread_t thread;
    struct aster_serializer *store;
    struct aster_runtime *runtime;
    unsigned seed;
    int holds;
    atomic_int calls;
};

static struct counter {
    int value; /* guarded by nothing but the lease */
    _Atomic(int) inside;
} counters[RESOURCES];

static atomic_bool rivals_stop;

static void count_call(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    struct rival *rival = user;
    (void)lease;
    (void)status;
    atomic_fetch_add(&rival->calls, 1);
}

static aster_status add_one(void *tx, void *user)
{
    (void)tx;
    struct counter *counter = user;
    if (atomic_fetch_add(&counter->inside, 1) != 0) {
        return ASTER_ERR_CORRUPT;
    }
    counter->value++;
    atomic_fetch_sub(&counter->inside, 1);
    return ASTER_OK;
}

static void work(struct rival *rival, struct aster_lease *lease, struct counter *counter)
{
    const struct aster_fence *fence = aster_lease_fence(lease);
    if (fence == NULL) {
        return;
    }
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    if (aster_mutate_fenced(rival->store, fence, fence->holder, add_one, counter, &verdict, NULL) != ASTER_OK) {
        abort();
    }
    rival->holds += verdict.reason == ASTER_REASON_NONE;
}

static void end(struct rival *rival, struct aster_lease *lease)
{
    switch (rand_r(&rival->seed) % 4) {
    case 0:
        aster_lease_drop(lease);
        break;
    case 1:
        aster_lease_cancel(lease);
        break;
    default:
        if (aster_lease_release(lease, 5000, NULL, NULL) != ASTER_OK) {
            abort();
        }
    }
    aster_lease_destroy(lease);
}

static void *compete(void *argument)
{
    struct rival *rival = argument;
    static const char *const names[RESOURCES] = {"r0", "r1", "r2"};
    while (!atomic_load(&rivals_stop)) {
        int number = rand_r(&rival->seed) % RESOURCES;
        char holder[16];
        snprintf(holder, sizeof holder, "rival%u", rival->seed % 100);
        struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
        options.ttl_ms = 100 + rand_r(&rival->seed) % 200;
        options.wait_ms = rand_r(&rival->seed) % 100;
        options.runtime = rival->runtime;
        options.on_status = count_call;
        options.user = rival;
        struct aster_lease *lease = NULL;
        if (aster_lease_start(rival->store, aster_text(names[number]), aster_text(holder), &options, &lease, NULL) !=
            ASTER_OK) {
            abort();
        }
        if (aster_lease_wait_acquired(lease, rand_r(&rival->seed) % 150, NULL, NULL) == ASTER_OK) {
            work(rival, lease, &counters[number]);
        }
        if (aster_lease_fd(lease) < 0) {
            abort();
        }
        end(rival, lease);
    }
    return NULL;
}

static void rivals_on_many_threads_exclude_each_other_and_leave_nothing_behind(void **state)
{
    (void)state;
    struct aster_serializer *store = open_memory();
    struct aster_runtime *runtime = NULL;
    assert_int_equal(aster_runtime_create(NULL, &runtime, NULL), ASTER_OK);
    static struct rival rivals[RIVALS];
    atomic_store(&rivals_stop, false);
    for (unsigned i = 0; i < RIVALS; i++) {
        rivals[i].store = store;
        rivals[i].runtime = runtime;
        rivals[i].seed = i + 1;
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, compete, &rivals[i]), 0);
    }
    sleep_ms(RIVAL_MS);
    atomic_store(&rivals_stop, true);
    int holds = 0;
    int value = 0;
    for (size_t i = 0; i < RIVALS; i++) {
        assert_int_equal(pthread_join(rivals[i].thread, NULL), 0);
        holds += rivals[i].holds;
        assert_true(atomic_load(&rivals[i].calls) > 0);
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        value += counters[i].value;
    }
    assert_int_equal(value, holds);
    assert_true(holds > 0);
    int64_t until_ns = now_ns() + 10000 * ASTER_NS_PER_MS;
    while (aster_runtime_handles(runtime) > 0 && now_ns() < until_ns) {
        sleep_ms(5); /* a stray grant that is being released, a callback that is being forgotten */
    }
    assert_int_equal(aster_runtime_handles(runtime), 0);
    aster_runtime_destroy(runtime);
    aster_serializer_destroy(store);
}

/* A store that hangs inside its transaction until the semaphore is posted. */
struct hanging {
    sem_t entered;
    sem_t go_on;
};

static aster_status hang(void *user, const struct aster_operation *operation, struct aster_reply *reply,
                         struct aster_error *error)
{
    struct hanging *hanging = user;
    (void)operation;
    (void)reply;
    sem_post(&hanging->entered);
    while (sem_wait(&hanging->go_on) != 0) {
    }
    return aster_error_set(error, ASTER_ERR_IO, "the store is gone");
}

/* Row 133, for destroying: nothing here may wait for the store. */
static void handles_and_runtime_are_destroyed_at_once_while_the_store_hangs(void **state)
{
    (void)state;
    struct hanging hanging;
    sem_init(&hanging.entered, 0, 0);
    sem_init(&hanging.go_on, 0, 0);
    struct aster_serializer *store = NULL;
    assert_int_equal(aster_blocking_serializer_create(hang, &hanging, NULL, &store, NULL), ASTER_OK);
    struct aster_runtime *runtime = NULL;
    assert_int_equal(aster_runtime_create(NULL, &runtime, NULL), ASTER_OK);
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.runtime = runtime;
    struct aster_lease *lease = NULL;
    assert_int_equal(aster_lease_start(store, aster_text("r"), aster_text("A"), &options, &lease, NULL), ASTER_OK);
    while (sem_wait(&hanging.entered) != 0) {
    }
    int64_t begin_ns = now_ns();
    aster_lease_cancel(lease);
    assert_int_equal(aster_lease_wait_acquired(lease, -1, NULL, NULL), ASTER_ERR_CANCELLED);
    aster_lease_destroy(lease);
    assert_int_equal(aster_runtime_handles(runtime), 1);
    aster_runtime_destroy(runtime);
    assert_true(now_ns() - begin_ns < 3000 * ASTER_NS_PER_MS);
    sem_post(&hanging.go_on); /* its answer finds the handle, and frees it and the runtime */
    aster_serializer_destroy(store);
    sem_destroy(&hanging.entered);
    sem_destroy(&hanging.go_on);
}

struct slow {
    sem_t entered;
    sem_t go_on;
    atomic_int calls;
};

static void be_slow(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    struct slow *slow = user;
    (void)lease;
    atomic_fetch_add(&slow->calls, 1);
    if (status == ASTER_LEASE_HELD) {
        sem_post(&slow->entered);
        while (sem_wait(&slow->go_on) != 0) {
        }
    }
}

static void a_callback_that_takes_several_ttls_costs_no_renewal(void **state)
{
    (void)state;
    struct slow slow = {.calls = 0};
    sem_init(&slow.entered, 0, 0);
    sem_init(&slow.go_on, 0, 0);
    struct aster_serializer *store = open_memory();
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 2000;
    options.renew_interval_ms = 50;
    options.on_status = be_slow;
    options.user = &slow;
    struct aster_lease *lease = NULL;
    assert_int_equal(aster_lease_acquire(store, aster_text("r"), aster_text("A"), &options, &lease, NULL, NULL),
                     ASTER_OK);
    while (sem_wait(&slow.entered) != 0) {
    }
    struct aster_lease_report report;
    int64_t until_ns = now_ns() + 20000 * ASTER_NS_PER_MS;
    do {
        sleep_ms(10);
        aster_lease_report_get(lease, &report);
    } while (report.renewals < 10 && now_ns() < until_ns);
    assert_true(report.renewals >= 10);
    assert_int_equal(report.status, ASTER_LEASE_HELD);
    assert_int_equal(atomic_load(&slow.calls), 1);
    sem_post(&slow.go_on);
    assert_int_equal(aster_lease_release(lease, 5000, NULL, NULL), ASTER_OK);
    aster_lease_destroy(lease);
    aster_serializer_destroy(store);
    sem_destroy(&slow.entered);
    sem_destroy(&slow.go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_stopped_past_its_ttl_finds_no_fence_when_it_goes_on),
        cmocka_unit_test(handles_and_runtime_are_destroyed_at_once_while_the_store_hangs),
        cmocka_unit_test(a_callback_that_takes_several_ttls_costs_no_renewal),
        cmocka_unit_test(rivals_on_many_threads_exclude_each_other_and_leave_nothing_behind),
        cmocka_unit_test(two_hundred_busy_threads_never_make_a_fence_outlive_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
