/* One thread's sleep until an instant of CLOCK_BOOTTIME or a wake-up from another thread. CLOCK_BOOTTIME needs a
 * timerfd: condition variables only know clocks that stop during suspend. For the system clock only; over a virtual
 * clock nobody sleeps (see aster/sys/clock.h). */
#ifndef PLATFORM_SLEEPER_H
#define PLATFORM_SLEEPER_H

#include <stdint.h>

#include "aster/status.h"

struct aster_sleeper {
    int timer_fd;
    int event_fd;
};

aster_status aster_sleeper_init(struct aster_sleeper *sleeper, struct aster_error *error);
void aster_sleeper_fini(struct aster_sleeper *sleeper);

/* Sleep until `until_ns` (INT64_MAX = for ever) or a wake since the last return. One thread. */
void aster_sleeper_sleep(struct aster_sleeper *sleeper, int64_t until_ns);

/* Wake the sleeping thread, or make its next sleep return at once. Any thread, any time, async-signal-safe. */
void aster_sleeper_wake(struct aster_sleeper *sleeper);

#endif
