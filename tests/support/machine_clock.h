/* The clock of one machine among several on one virtual clock: it may run faster or slower than the others', and its
 * timers may stand still for a while, as in a process that does not get to run. */
#ifndef SUPPORT_MACHINE_CLOCK_H
#define SUPPORT_MACHINE_CLOCK_H

#include <stdbool.h>

#include "support/fake_clock.h"

struct machine_clock {
    struct aster_clock clock;
    const struct aster_clock *base;
    int64_t from_ns; /* where both agree */
    int64_t ppm;     /* how much faster than the base; < 0 = slower */
    bool stalled;    /* time goes on, timers do not run */
    int64_t (*wake)(void *user);
    void *user;
};

/* `machine` must not move; one subscriber at most. */
void machine_clock_init(struct machine_clock *machine, struct fake_clock *base, int64_t ppm);

#endif
