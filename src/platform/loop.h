/* One thread on epoll: descriptors, timers and tasks posted by other threads. Everything runs on the loop's thread;
 * only post, call and stop are for others. Its clock is CLOCK_MONOTONIC, which is for timeouts of connections: leases
 * are judged elsewhere, on CLOCK_BOOTTIME. */
#ifndef PLATFORM_LOOP_H
#define PLATFORM_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/timers.h"

struct aster_loop;

/* Something with a descriptor. Lives inside its owner; the owner keeps it until it is removed. */
struct aster_watch {
    void (*ready)(struct aster_watch *watch, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR */
    int fd;
};

/* Work for the loop's thread. Lives inside its owner until it has run. */
struct aster_task {
    struct aster_task *next;
    void (*run)(struct aster_task *task);
};

/* Called at the end of each round, after descriptors, tasks and timers: the place to write what a round produced. */
struct aster_round {
    struct aster_round *next;
    void (*end)(struct aster_round *round, int64_t now_ns);
};

/* Start the thread, named `name` (15 bytes at most). Errors: ASTER_ERR_IO, ASTER_ERR_NOMEM. */
aster_status aster_loop_create(const char *name, struct aster_loop **loop, struct aster_error *error);
/* Run the tasks posted so far, end the thread and free. Every watch, timer and round must be gone by then. From another
 * thread. NULL is legal. */
void aster_loop_destroy(struct aster_loop *loop);

/* Any thread; does not block. Tasks run in the order of their posting. */
void aster_loop_post(struct aster_loop *loop, struct aster_task *task);
/* What is posted between these two wakes the loop once, at the second. One thread at a time. */
void aster_loop_gather(struct aster_loop *loop);
void aster_loop_gathered(struct aster_loop *loop);
/* Run `function` on the loop's thread and wait for its result; on the loop's thread itself it is a plain call. */
aster_status aster_loop_call(struct aster_loop *loop, aster_status (*function)(void *argument), void *argument);
bool aster_loop_is_current(const struct aster_loop *loop);

/* The rest only on the loop's thread. */
aster_status aster_loop_add(struct aster_loop *loop, struct aster_watch *watch, uint32_t events,
                            struct aster_error *error);
void aster_loop_change(struct aster_loop *loop, struct aster_watch *watch, uint32_t events);
/* No call of ready() follows, also not in this round. */
void aster_loop_remove(struct aster_loop *loop, struct aster_watch *watch);
struct aster_timers *aster_loop_timers(struct aster_loop *loop);
void aster_loop_round_add(struct aster_loop *loop, struct aster_round *round);
void aster_loop_round_remove(struct aster_loop *loop, struct aster_round *round);
/* CLOCK_MONOTONIC when this round began. */
int64_t aster_loop_now_ns(const struct aster_loop *loop);

#endif
