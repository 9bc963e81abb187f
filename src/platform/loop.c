#include "platform/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define EVENTS_PER_ROUND 128

struct aster_loop {
    int epoll_fd;
    int event_fd;
    pthread_t thread;
    atomic_bool stopping;
    bool coarse; /* the kernel has no epoll_pwait2 */
    int64_t now_ns;
    struct aster_timers timers;
    struct aster_round *rounds;
    struct aster_round *round_next; /* of the one that is running, so that it may remove others */
    struct epoll_event events[EVENTS_PER_ROUND];
    int event_count;
    _Atomic(struct aster_task *) posted; /* newest first */
    struct aster_task gatherer;          /* while it is among them, posting wakes nobody */
    atomic_bool gathering;
};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wake(struct aster_loop *loop)
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(loop->event_fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}

/* Returns whether the loop is to be woken: otherwise somebody has, and it has not looked yet. */
static bool push(struct aster_loop *loop, struct aster_task *task)
{
    struct aster_task *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);
    do {
        task->next = head;
    } while (
        !atomic_compare_exchange_weak_explicit(&loop->posted, &head, task, memory_order_release, memory_order_relaxed));
    return head == NULL;
}

void aster_loop_post(struct aster_loop *loop, struct aster_task *task)
{
    if (push(loop, task)) {
        wake(loop);
    }
}

static void end_gathering(struct aster_task *task)
{
    struct aster_loop *loop = (void *)((char *)task - offsetof(struct aster_loop, gatherer));
    atomic_store(&loop->gathering, false);
}

void aster_loop_gather(struct aster_loop *loop)
{
    if (!atomic_exchange(&loop->gathering, true)) {
        loop->gatherer.run = end_gathering;
        push(loop, &loop->gatherer);
    }
}

void aster_loop_gathered(struct aster_loop *loop)
{
    if (atomic_load(&loop->gathering)) { /* it has not looked by itself */
        wake(loop);
    }
}

static void run_tasks(struct aster_loop *loop)
{
    struct aster_task *newest = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    struct aster_task *oldest = NULL;
    while (newest != NULL) {
        struct aster_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct aster_task *next = oldest->next;
        oldest->run(oldest);
        oldest = next;
    }
}

static int wait_events(struct aster_loop *loop, int64_t until_ns)
{
    int64_t left = until_ns == INT64_MAX ? INT64_MAX : until_ns - monotonic_ns();
    left = left < 0 ? 0 : left;
    if (!loop->coarse) {
        const struct timespec timeout = {left / 1000000000, left % 1000000000};
        int count =
            epoll_pwait2(loop->epoll_fd, loop->events, EVENTS_PER_ROUND, left == INT64_MAX ? NULL : &timeout, NULL);
        if (count >= 0 || errno != ENOSYS) {
            return count;
        }
        loop->coarse = true;
    }
    /* Rounded up: waking before the timer would spin. */
    int64_t ms = left == INT64_MAX ? -1 : left / 1000000 + (left % 1000000 != 0);
    return epoll_wait(loop->epoll_fd, loop->events, EVENTS_PER_ROUND, ms > 3600000 ? 3600000 : (int)ms);
}

static void handle_events(struct aster_loop *loop)
{
    for (int i = 0; i < loop->event_count; i++) {
        struct aster_watch *watch = loop->events[i].data.ptr;
        if (watch != NULL) {
            watch->ready(watch, loop->events[i].events);
        }
    }
    loop->event_count = 0;
}

static void end_round(struct aster_loop *loop)
{
    for (struct aster_round *round = loop->rounds; round != NULL; round = loop->round_next) {
        loop->round_next = round->next;
        round->end(round, loop->now_ns);
    }
}

static void *run(void *argument)
{
    struct aster_loop *loop = argument;
    while (!atomic_load_explicit(&loop->stopping, memory_order_acquire)) {
        int count = wait_events(loop, aster_timers_next(&loop->timers));
        loop->now_ns = monotonic_ns();
        loop->event_count = count > 0 ? count : 0;
        handle_events(loop);
        run_tasks(loop);
        aster_timers_fire(&loop->timers, loop->now_ns);
        end_round(loop);
    }
    run_tasks(loop);
    return NULL;
}

static void drain(struct aster_watch *watch, uint32_t events)
{
    (void)events;
    uint64_t count;
    while (read(watch->fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
}

struct started_loop {
    struct aster_loop loop;
    struct aster_watch wake;
};

static aster_status open_descriptors(struct started_loop *started, struct aster_error *error)
{
    struct aster_loop *loop = &started->loop;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create an epoll or event descriptor");
    }
    started->wake = (struct aster_watch){drain, loop->event_fd};
    return aster_loop_add(loop, &started->wake, EPOLLIN, error);
}

static void free_loop(struct started_loop *started)
{
    if (started->loop.epoll_fd >= 0) {
        close(started->loop.epoll_fd);
    }
    if (started->loop.event_fd >= 0) {
        close(started->loop.event_fd);
    }
    aster_timers_fini(&started->loop.timers);
    free(started);
}

/* Signals are the program's business, not this thread's. */
static int start_thread(struct aster_loop *loop)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&loop->thread, NULL, run, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

aster_status aster_loop_create(const char *name, struct aster_loop **loop, struct aster_error *error)
{
    struct started_loop *started = calloc(1, sizeof *started);
    if (started == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for an event loop");
    }
    started->loop.epoll_fd = started->loop.event_fd = -1;
    started->loop.now_ns = monotonic_ns();
    aster_status status = open_descriptors(started, error);
    if (status != ASTER_OK) {
        goto fail;
    }
    int code = start_thread(&started->loop);
    if (code != 0) {
        status = aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start the network thread");
        goto fail;
    }
    pthread_setname_np(started->loop.thread, name);
    *loop = &started->loop;
    return ASTER_OK;
fail:
    free_loop(started);
    return status;
}

void aster_loop_destroy(struct aster_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    atomic_store_explicit(&loop->stopping, true, memory_order_release);
    wake(loop);
    pthread_join(loop->thread, NULL);
    free_loop((struct started_loop *)loop);
}

bool aster_loop_is_current(const struct aster_loop *loop)
{
    return pthread_equal(pthread_self(), loop->thread) != 0;
}

struct call {
    struct aster_task task;
    aster_status (*function)(void *argument);
    void *argument;
    aster_status status;
    bool done;
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

static void run_call(struct aster_task *task)
{
    struct call *call = (struct call *)task;
    call->status = call->function(call->argument);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->finished);
    pthread_mutex_unlock(&call->lock);
}

aster_status aster_loop_call(struct aster_loop *loop, aster_status (*function)(void *argument), void *argument)
{
    if (aster_loop_is_current(loop)) {
        return function(argument);
    }
    struct call call = {.task = {NULL, run_call}, .function = function, .argument = argument};
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.finished, NULL);
    aster_loop_post(loop, &call.task);
    pthread_mutex_lock(&call.lock);
    while (!call.done) {
        pthread_cond_wait(&call.finished, &call.lock);
    }
    pthread_mutex_unlock(&call.lock);
    pthread_cond_destroy(&call.finished);
    pthread_mutex_destroy(&call.lock);
    return call.status;
}

aster_status aster_loop_add(struct aster_loop *loop, struct aster_watch *watch, uint32_t events,
                            struct aster_error *error)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot watch a descriptor");
    }
    return ASTER_OK;
}

void aster_loop_change(struct aster_loop *loop, struct aster_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event); /* fails only for a descriptor that was not added */
}

void aster_loop_remove(struct aster_loop *loop, struct aster_watch *watch)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = 0; i < loop->event_count; i++) {
        if (loop->events[i].data.ptr == watch) {
            loop->events[i].data.ptr = NULL;
        }
    }
}

struct aster_timers *aster_loop_timers(struct aster_loop *loop)
{
    return &loop->timers;
}

void aster_loop_round_add(struct aster_loop *loop, struct aster_round *round)
{
    round->next = loop->rounds;
    loop->rounds = round;
}

void aster_loop_round_remove(struct aster_loop *loop, struct aster_round *round)
{
    for (struct aster_round **at = &loop->rounds; *at != NULL; at = &(*at)->next) {
        if (*at == round) {
            *at = round->next;
            break;
        }
    }
    if (loop->round_next == round) {
        loop->round_next = round->next;
    }
}

int64_t aster_loop_now_ns(const struct aster_loop *loop)
{
    return loop->now_ns;
}
