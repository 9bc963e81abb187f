#include "clock.h"

#include <stdlib.h>
#include <string.h>

static int64_t now_ns(void *self)
{
    struct conformance_clock *clock = self;
    return atomic_load(&clock->now_ns);
}

static int64_t unix_ms(void *self)
{
    return INT64_C(1700000000000) + now_ns(self) / 1000000;
}

static void subscribe(void *self, int64_t (*wake)(void *user), void *user)
{
    struct conformance_clock *clock = self;
    pthread_mutex_lock(&clock->mutex);
    size_t at = 0;
    while (at < CONFORMANCE_SUBSCRIBERS_MAX && clock->subscribers[at].wake != NULL) {
        at++;
    }
    if (at == CONFORMANCE_SUBSCRIBERS_MAX) {
        abort(); /* a subject that subscribes for every operation */
    }
    clock->subscribers[at].wake = wake;
    clock->subscribers[at].user = user;
    pthread_mutex_unlock(&clock->mutex);
}

static void unsubscribe(void *self, void *user)
{
    struct conformance_clock *clock = self;
    pthread_mutex_lock(&clock->mutex);
    for (size_t i = 0; i < CONFORMANCE_SUBSCRIBERS_MAX; i++) {
        if (clock->subscribers[i].wake == NULL || clock->subscribers[i].user != user) {
            continue;
        }
        while (clock->subscribers[i].running) {
            pthread_cond_wait(&clock->idle, &clock->mutex);
        }
        clock->subscribers[i].wake = NULL;
    }
    pthread_mutex_unlock(&clock->mutex);
}

static const struct aster_clock_ops ops = {sizeof ops, now_ns, unix_ms, subscribe, unsubscribe};

void aster_conformance_clock_init(struct conformance_clock *clock)
{
    memset(clock, 0, sizeof *clock);
    clock->clock = (struct aster_clock){&ops, clock};
    atomic_store(&clock->now_ns, INT64_C(1000000000000));
    pthread_mutex_init(&clock->mutex, NULL);
    pthread_cond_init(&clock->idle, NULL);
}

void aster_conformance_clock_fini(struct conformance_clock *clock)
{
    pthread_mutex_destroy(&clock->mutex);
    pthread_cond_destroy(&clock->idle);
}

static int64_t wake_all(struct conformance_clock *clock)
{
    int64_t earliest_ns = INT64_MAX;
    for (size_t i = 0; i < CONFORMANCE_SUBSCRIBERS_MAX; i++) {
        pthread_mutex_lock(&clock->mutex);
        int64_t (*wake)(void *user) = clock->subscribers[i].wake;
        void *user = clock->subscribers[i].user;
        clock->subscribers[i].running = wake != NULL;
        pthread_mutex_unlock(&clock->mutex);
        if (wake == NULL) {
            continue;
        }
        int64_t next_ns = wake(user);
        earliest_ns = next_ns < earliest_ns ? next_ns : earliest_ns;
        pthread_mutex_lock(&clock->mutex);
        clock->subscribers[i].running = false;
        pthread_cond_broadcast(&clock->idle);
        pthread_mutex_unlock(&clock->mutex);
    }
    return earliest_ns;
}

void aster_conformance_clock_advance(struct conformance_clock *clock, int64_t ns)
{
    int64_t target_ns = atomic_load(&clock->now_ns) + ns;
    for (;;) {
        int64_t at_ns = atomic_load(&clock->now_ns);
        int64_t next_ns = wake_all(clock);
        next_ns = next_ns <= at_ns ? at_ns + 1 : next_ns;
        if (next_ns > target_ns) {
            break;
        }
        atomic_store(&clock->now_ns, next_ns);
    }
    atomic_store(&clock->now_ns, target_ns);
    wake_all(clock);
}
