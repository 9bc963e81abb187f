/* A heap of timers inside their owners' structures: nothing is allocated per timer but the heap's slot. Pure; the
 * caller says what time it is. One thread. */
#ifndef PLATFORM_TIMERS_H
#define PLATFORM_TIMERS_H

#include <stddef.h>
#include <stdint.h>

#include "aster/status.h"

struct aster_timer {
    int64_t at_ns;
    size_t slot;                                             /* place in the heap + 1; 0 = not set */
    void (*fire)(struct aster_timer *timer, int64_t now_ns); /* the timer is unset before the call */
};

struct aster_timers {
    struct aster_timer **heap;
    size_t count;
    size_t capacity;
    size_t reserved;
};

/* Make room for one more timer, so that setting it cannot fail. Errors: ASTER_ERR_NOMEM. */
aster_status aster_timers_reserve(struct aster_timers *timers, struct aster_error *error);
/* Give a reservation back; the timer must be unset. */
void aster_timers_unreserve(struct aster_timers *timers);
void aster_timers_fini(struct aster_timers *timers);

/* Set or move a timer, which was reserved. */
void aster_timers_set(struct aster_timers *timers, struct aster_timer *timer, int64_t at_ns);
void aster_timers_unset(struct aster_timers *timers, struct aster_timer *timer);

/* The earliest instant, INT64_MAX when none is set. */
int64_t aster_timers_next(const struct aster_timers *timers);
/* Fire what is due at now_ns. Timers set meanwhile to now or earlier wait for the next call. */
void aster_timers_fire(struct aster_timers *timers, int64_t now_ns);

#endif
