#include "serializer/memory/timers.h"

#include <stdlib.h>

bool aster_memory_timers_reserve(struct memory_timers *timers, size_t more)
{
    if (timers->count + more <= timers->capacity) {
        return true;
    }
    size_t capacity = timers->capacity < 8 ? 16 : timers->capacity * 2;
    struct memory_timer **heap = realloc(timers->heap, capacity * sizeof(struct memory_timer *));
    if (heap == NULL) {
        return false;
    }
    timers->heap = heap;
    timers->capacity = capacity;
    return true;
}

static void place(struct memory_timers *timers, size_t at, struct memory_timer *timer)
{
    timers->heap[at] = timer;
    timer->slot = at + 1;
}

static void sift_up(struct memory_timers *timers, size_t at, struct memory_timer *timer)
{
    while (at > 0 && timers->heap[(at - 1) / 2]->at_ns > timer->at_ns) {
        place(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(timers, at, timer);
}

static void sift_down(struct memory_timers *timers, size_t at, struct memory_timer *timer)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < timers->count && timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns) {
            child++;
        }
        if (child >= timers->count || timers->heap[child]->at_ns >= timer->at_ns) {
            break;
        }
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, timer);
}

static void sift(struct memory_timers *timers, size_t at, struct memory_timer *timer)
{
    if (at > 0 && timers->heap[(at - 1) / 2]->at_ns > timer->at_ns) {
        sift_up(timers, at, timer);
    } else {
        sift_down(timers, at, timer);
    }
}

void aster_memory_timers_set(struct memory_timers *timers, struct memory_timer *timer, int64_t at_ns)
{
    timer->at_ns = at_ns;
    sift(timers, timer->slot != 0 ? timer->slot - 1 : timers->count++, timer);
}

void aster_memory_timers_unset(struct memory_timers *timers, struct memory_timer *timer)
{
    if (timer->slot == 0) {
        return;
    }
    size_t at = timer->slot - 1;
    timer->slot = 0;
    struct memory_timer *last = timers->heap[--timers->count];
    if (last != timer) {
        sift(timers, at, last);
    }
}

struct memory_timer *aster_memory_timers_first(const struct memory_timers *timers)
{
    return timers->count > 0 ? timers->heap[0] : NULL;
}

void aster_memory_timers_fini(struct memory_timers *timers)
{
    free(timers->heap);
}
