#include "support/fake_clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define SUBSCRIBERS_MAX 64

struct subscriber {
    int64_t (*wake)(void *user);
    void *user;
    bool running;
};

struct fake_clock {
    struct aster_clock clock;
    _Atomic(int64_t) now_ns;
    _Atomic(int64_t) wall_offset_ms;
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    struct subscriber subscribers[SUBSCRIBERS_MAX];
};

static int64_t now_ns(void *self)
{
    struct fake_clock *clock = self;
    return atomic_load(&clock->now_ns);
}

static int64_t unix_ms(void *self)
{
    struct fake_clock *clock = self;
    return INT64_C(1700000000000) + atomic_load(&clock->now_ns) / 1000000 + atomic_load(&clock->wall_offset_ms);
}

static void subscribe(void *self, int64_t (*wake)(void *user), void *user)
{
    struct fake_clock *clock = self;
    pthread_mutex_lock(&clock->mutex);
    size_t at = 0;
    while (at < SUBSCRIBERS_MAX && clock->subscribers[at].wake != NULL) {
        at++;
    }
    if (at == SUBSCRIBERS_MAX) {
        abort();
    }
    clock->subscribers[at] = (struct subscriber){wake, user, false};
    pthread_mutex_unlock(&clock->mutex);
}

static void unsubscribe(void *self, void *user)
{
    struct fake_clock *clock = self;
    pthread_mutex_lock(&clock->mutex);
    for (size_t i = 0; i < SUBSCRIBERS_MAX; i++) {
        struct subscriber *subscriber = &clock->subscribers[i];
        if (subscriber->wake == NULL || subscriber->user != user) {
            continue;
        }
        while (subscriber->running) {
            pthread_cond_wait(&clock->idle, &clock->mutex);
        }
        subscriber->wake = NULL;
    }
    pthread_mutex_unlock(&clock->mutex);
}

static const struct aster_clock_ops ops = {sizeof ops, now_ns, unix_ms, subscribe, unsubscribe};

struct fake_clock *fake_clock_create(void)
{
    struct fake_clock *clock = calloc(1, sizeof *clock);
    if (clock == NULL) {
        abort();
    }
    clock->clock = (struct aster_clock){&ops, clock};
    atomic_store(&clock->now_ns, INT64_C(1000000000000));
    pthread_mutex_init(&clock->mutex, NULL);
    pthread_cond_init(&clock->idle, NULL);
    return clock;
}

void fake_clock_destroy(struct fake_clock *clock)
{
    if (clock != NULL) {
        pthread_mutex_destroy(&clock->mutex);
        pthread_cond_destroy(&clock->idle);
        free(clock);
    }
}

const struct aster_clock *fake_clock_clock(struct fake_clock *clock)
{
    return &clock->clock;
}

/* Wake every subscriber once; the earliest instant that any of them asked for. */
static int64_t wake_all(struct fake_clock *clock)
{
    int64_t earliest = INT64_MAX;
    for (size_t i = 0; i < SUBSCRIBERS_MAX; i++) {
        pthread_mutex_lock(&clock->mutex);
        struct subscriber subscriber = clock->subscribers[i];
        clock->subscribers[i].running = subscriber.wake != NULL;
        pthread_mutex_unlock(&clock->mutex);
        if (subscriber.wake == NULL) {
            continue;
        }
        int64_t next = subscriber.wake(subscriber.user);
        if (next < earliest) {
            earliest = next;
        }
        pthread_mutex_lock(&clock->mutex);
        clock->subscribers[i].running = false;
        pthread_cond_broadcast(&clock->idle);
        pthread_mutex_unlock(&clock->mutex);
    }
    return earliest;
}

void fake_clock_advance_ns(struct fake_clock *clock, int64_t ns)
{
    int64_t target = atomic_load(&clock->now_ns) + ns;
    for (;;) {
        int64_t now = atomic_load(&clock->now_ns);
        int64_t next = wake_all(clock);
        if (next <= now) {
            next = now + 1; /* a subscriber that is not done yet, for example one that waits for another */
        }
        if (next > target) {
            break;
        }
        atomic_store(&clock->now_ns, next);
    }
    atomic_store(&clock->now_ns, target);
    wake_all(clock);
}

void fake_clock_advance_ms(struct fake_clock *clock, int64_t ms)
{
    fake_clock_advance_ns(clock, ms * 1000000);
}

void fake_clock_leap_ms(struct fake_clock *clock, int64_t ms)
{
    atomic_fetch_add(&clock->now_ns, ms * 1000000);
    wake_all(clock);
}

void fake_clock_shift_wall_ms(struct fake_clock *clock, int64_t ms)
{
    atomic_fetch_add(&clock->wall_offset_ms, ms);
}

int64_t fake_clock_now_ns(struct fake_clock *clock)
{
    return atomic_load(&clock->now_ns);
}
