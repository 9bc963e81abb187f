/* The clock seam. Intervals run on CLOCK_BOOTTIME, which also runs while the machine is suspended; the wall clock is
 * for display only. The one assumption Aster makes about clocks: two clocks' *rates* differ by less than the drift
 * bound (500 ppm by default). No clocks need to be synchronised, and the fence protects the data even when the
 * assumption is broken. */
#ifndef ASTER_SYS_CLOCK_H
#define ASTER_SYS_CLOCK_H

#include <stdint.h>

#include "aster/status.h"

ASTER_BEGIN_DECLS

struct aster_clock_ops {
    size_t struct_size;
    /* Nanoseconds of a clock that never goes back. Any thread; must not block; wait-free in the system clock. */
    int64_t (*now_ns)(void *self);
    /* Milliseconds since 1970, for display. Any thread; must not block. */
    int64_t (*unix_ms)(void *self);
    /* Only in a virtual clock (tests, simulation), else NULL. A subscriber sleeps on no timer of its own: the clock
     * calls wake(user), which does what is due and returns the next instant at which it wants to be called
     * (INT64_MAX = none). Called from the thread that advances the clock, with none of the clock's locks held. */
    void (*subscribe)(void *self, int64_t (*wake)(void *user), void *user);
    void (*unsubscribe)(void *self, void *user); /* on return wake(user) is not running and will not run */
};

struct aster_clock {
    const struct aster_clock_ops *ops;
    void *self;
};

/* The operating system's clock: CLOCK_BOOTTIME and CLOCK_REALTIME. Static storage; never NULL. */
ASTER_API const struct aster_clock *aster_clock_system(void);

static inline int64_t aster_clock_now_ns(const struct aster_clock *clock)
{
    return clock->ops->now_ns(clock->self);
}

static inline int64_t aster_clock_unix_ms(const struct aster_clock *clock)
{
    return clock->ops->unix_ms(clock->self);
}

static inline int aster_clock_is_virtual(const struct aster_clock *clock)
{
    return clock->ops->subscribe != NULL;
}

ASTER_END_DECLS

#endif
