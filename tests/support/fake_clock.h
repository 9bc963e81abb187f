/* A virtual clock. Advancing it stops at every instant that a subscriber asked for, so timers run in order and exactly
 * on time. The wall clock can be set apart from it. */
#ifndef SUPPORT_FAKE_CLOCK_H
#define SUPPORT_FAKE_CLOCK_H

#include "aster/sys/clock.h"

struct fake_clock;

struct fake_clock *fake_clock_create(void); /* starts at 1000 s */
void fake_clock_destroy(struct fake_clock *clock);
const struct aster_clock *fake_clock_clock(struct fake_clock *clock);

/* Move forward, waking subscribers on the way. One thread at a time. */
void fake_clock_advance_ms(struct fake_clock *clock, int64_t ms);
void fake_clock_advance_ns(struct fake_clock *clock, int64_t ns);

/* Move forward in one leap, then wake everyone once: suspend, SIGSTOP, a stalled process. */
void fake_clock_leap_ms(struct fake_clock *clock, int64_t ms);

/* Shift the wall clock only. */
void fake_clock_shift_wall_ms(struct fake_clock *clock, int64_t ms);

int64_t fake_clock_now_ns(struct fake_clock *clock);

#endif
