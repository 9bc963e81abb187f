/* The virtual clock of the suite. Advancing it stops at every instant that a subscriber asked for. */
#ifndef CONFORMANCE_CLOCK_H
#define CONFORMANCE_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "aster/sys/clock.h"

#define CONFORMANCE_SUBSCRIBERS_MAX 16

struct conformance_clock {
    struct aster_clock clock;
    _Atomic(int64_t) now_ns;
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    struct {
        int64_t (*wake)(void *user);
        void *user;
        bool running;
    } subscribers[CONFORMANCE_SUBSCRIBERS_MAX];
};

void aster_conformance_clock_init(struct conformance_clock *clock);
void aster_conformance_clock_fini(struct conformance_clock *clock);
void aster_conformance_clock_advance(struct conformance_clock *clock, int64_t ns);

#endif
