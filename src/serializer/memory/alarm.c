/* Who wakes up when a lease with waiters expires or a waiter's time is over: one thread on the system clock, started
 * when somebody first waits; the clock itself when it is virtual. */
#include "base/error.h"
#include "platform/thread.h"
#include "serializer/memory/internal.h"

/* Run what is due in every stripe where somebody waits; give the next instant at which something may be. */
static int64_t run_due(void *user)
{
    struct memory *memory = user;
    int64_t next_ns = INT64_MAX;
    /* Whoever sets a timer meanwhile cannot know whether its stripe has been looked at: let them all ring. */
    atomic_store(&memory->alarm_at_ns, INT64_MAX);
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        if (atomic_load(&stripe->waiting) == 0) {
            continue;
        }
        int64_t first_ns = aster_memory_stripe_run_timers(memory, stripe);
        if (first_ns < next_ns) {
            next_ns = first_ns;
        }
    }
    return next_ns;
}

static void *watch(void *user)
{
    struct memory *memory = user;
    while (!atomic_load(&memory->alarm_stop)) {
        int64_t next_ns = run_due(memory);
        int64_t rung = INT64_MAX;
        atomic_compare_exchange_strong(&memory->alarm_at_ns, &rung, next_ns);
        aster_sleeper_sleep(&memory->sleeper, next_ns);
    }
    return NULL;
}

static aster_status start_thread(struct memory *memory, struct aster_error *error)
{
    aster_status status = aster_sleeper_init(&memory->sleeper, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = aster_thread_start(&memory->alarm_thread, watch, memory);
    if (code != 0) {
        aster_sleeper_fini(&memory->sleeper);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start the thread that wakes waiters");
    }
    return ASTER_OK;
}

aster_status aster_memory_alarm_start(struct memory *memory, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&memory->alarm_mutex);
    if (!memory->alarm_started) {
        if (aster_clock_is_virtual(&memory->clock)) {
            memory->clock.ops->subscribe(memory->clock.self, run_due, memory);
        } else {
            status = start_thread(memory, error);
        }
        memory->alarm_started = status == ASTER_OK;
    }
    pthread_mutex_unlock(&memory->alarm_mutex);
    return status;
}

void aster_memory_alarm_set(struct memory *memory, int64_t at_ns)
{
    if (aster_clock_is_virtual(&memory->clock)) {
        return; /* it asks again before it moves */
    }
    int64_t known = atomic_load(&memory->alarm_at_ns);
    while (at_ns < known) {
        if (atomic_compare_exchange_weak(&memory->alarm_at_ns, &known, at_ns)) {
            aster_sleeper_wake(&memory->sleeper);
            return;
        }
    }
}

void aster_memory_alarm_stop(struct memory *memory)
{
    if (!memory->alarm_started) {
        return;
    }
    if (aster_clock_is_virtual(&memory->clock)) {
        memory->clock.ops->unsubscribe(memory->clock.self, memory);
        return;
    }
    atomic_store(&memory->alarm_stop, true);
    aster_sleeper_wake(&memory->sleeper);
    pthread_join(memory->alarm_thread, NULL);
    aster_sleeper_fini(&memory->sleeper);
}
