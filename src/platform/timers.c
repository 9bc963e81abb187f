#include "platform/timers.h"

#include <stdlib.h>

#include "base/error.h"

aster_status aster_timers_reserve(struct aster_timers *timers, struct aster_error *error)
{
    if (timers->reserved == timers->capacity) {
        size_t capacity = timers->capacity != 0 ? timers->capacity * 2 : 64;
        struct aster_timer **heap = realloc(timers->heap, capacity * sizeof *heap);
        if (heap == NULL) {
            return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for %zu timers", capacity);
        }
        timers->heap = heap;
        timers->capacity = capacity;
    }
    timers->reserved++;
    return ASTER_OK;
}

void aster_timers_unreserve(struct aster_timers *timers)
{
    timers->reserved--;
}

void aster_timers_fini(struct aster_timers *timers)
{
    free(timers->heap);
    *timers = (struct aster_timers){NULL, 0, 0, 0};
}

static void place(struct aster_timers *timers, size_t at, struct aster_timer *timer)
{
    timers->heap[at] = timer;
    timer->slot = at + 1;
}

static void sift_up(struct aster_timers *timers, size_t at, struct aster_timer *timer)
{
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (timers->heap[parent]->at_ns <= timer->at_ns) {
            break;
        }
        place(timers, at, timers->heap[parent]);
        at = parent;
    }
    place(timers, at, timer);
}

static void sift_down(struct aster_timers *timers, size_t at, struct aster_timer *timer)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= timers->count) {
            break;
        }
        if (child + 1 < timers->count && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns) {
            child++;
        }
        if (timers->heap[child]->at_ns >= timer->at_ns) {
            break;
        }
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, timer);
}

void aster_timers_set(struct aster_timers *timers, struct aster_timer *timer, int64_t at_ns)
{
    if (timer->slot == 0) {
        timer->at_ns = at_ns;
        sift_up(timers, timers->count++, timer);
        return;
    }
    int64_t before = timer->at_ns;
    timer->at_ns = at_ns;
    if (at_ns < before) {
        sift_up(timers, timer->slot - 1, timer);
    } else if (at_ns > before) {
        sift_down(timers, timer->slot - 1, timer);
    }
}

void aster_timers_unset(struct aster_timers *timers, struct aster_timer *timer)
{
    if (timer->slot == 0) {
        return;
    }
    size_t at = timer->slot - 1;
    timer->slot = 0;
    struct aster_timer *last = timers->heap[--timers->count];
    if (last == timer) {
        return;
    }
    sift_down(timers, at, last);
    sift_up(timers, last->slot - 1, last);
}

int64_t aster_timers_next(const struct aster_timers *timers)
{
    return timers->count != 0 ? timers->heap[0]->at_ns : INT64_MAX;
}

void aster_timers_fire(struct aster_timers *timers, int64_t now_ns)
{
    /* A timer that sets itself to now again must not keep the loop here. */
    size_t budget = timers->count;
    while (budget-- > 0 && timers->count != 0 && timers->heap[0]->at_ns <= now_ns) {
        struct aster_timer *timer = timers->heap[0];
        aster_timers_unset(timers, timer);
        timer->fire(timer, now_ns);
    }
}
