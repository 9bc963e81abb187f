/* A binary heap of intrusive timers: the earliest is on top. */
#ifndef MEMORY_TIMERS_H
#define MEMORY_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_timer_kind { MEMORY_TIMER_WAITER, MEMORY_TIMER_QUEUE };

struct memory_timer {
    int64_t at_ns;
    size_t slot; /* index + 1 in the heap; 0 = not set */
    enum memory_timer_kind kind;
};

struct memory_timers {
    struct memory_timer **heap;
    size_t count;
    size_t capacity;
};

/* Room for `more` timers on top of those that are set; false = out of memory. */
bool aster_memory_timers_reserve(struct memory_timers *timers, size_t more);
/* Set, or set anew. After reserve, when it was not set. */
void aster_memory_timers_set(struct memory_timers *timers, struct memory_timer *timer, int64_t at_ns);
void aster_memory_timers_unset(struct memory_timers *timers, struct memory_timer *timer);
/* The earliest, or NULL. */
struct memory_timer *aster_memory_timers_first(const struct memory_timers *timers);
void aster_memory_timers_fini(struct memory_timers *timers);

#endif
