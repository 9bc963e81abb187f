#include "serializer/sqlite/turns.h"

#include <errno.h>
#include <time.h>

#include "base/checked.h"

#define LONG_TURN_NS INT64_C(2000000) /* the gaps between shorter turns are enough by themselves */
#define REST_MIN_NS INT64_C(1000000)
#define REST_MAX_NS INT64_C(12000000) /* a little more than the longest pause between two looks, see worker.c */

void aster_turns_init(struct aster_turns *turns)
{
    *turns = (struct aster_turns){.next = ASTER_WRITER_WORKER};
    pthread_mutex_init(&turns->mutex, NULL);
    pthread_cond_init(&turns->changed, NULL);
}

void aster_turns_fini(struct aster_turns *turns)
{
    pthread_mutex_destroy(&turns->mutex);
    pthread_cond_destroy(&turns->changed);
}

static bool may_take(const struct aster_turns *turns, enum aster_writer writer)
{
    enum aster_writer other = writer == ASTER_WRITER_WORKER ? ASTER_WRITER_MUTATION : ASTER_WRITER_WORKER;
    bool other_waits = turns->waiting[other] > 0 || (other == ASTER_WRITER_WORKER && turns->worker_wants);
    return !turns->taken && (turns->next == writer || !other_waits);
}

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* With the turn taken, and unlocked. */
static void rest(struct aster_turns *turns)
{
    const struct timespec until = {turns->free_at_ns / 1000000000, turns->free_at_ns % 1000000000};
    if (monotonic_ns() < turns->free_at_ns) {
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
        }
    }
    turns->taken_at_ns = monotonic_ns();
}

static int64_t rest_after(int64_t held_ns)
{
    int64_t rest_ns = held_ns / 10 > REST_MIN_NS ? held_ns / 10 : REST_MIN_NS;
    if (held_ns < LONG_TURN_NS) {
        return 0;
    }
    return rest_ns < REST_MAX_NS ? rest_ns : REST_MAX_NS;
}

bool aster_turns_take(struct aster_turns *turns, enum aster_writer writer, int64_t wait_ns)
{
    int64_t until_ns = aster_add_saturated(monotonic_ns(), wait_ns);
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&turns->mutex);
    turns->waiting[writer]++;
    int code = 0;
    while (!may_take(turns, writer) && code != ETIMEDOUT) {
        code = pthread_cond_clockwait(&turns->changed, &turns->mutex, CLOCK_MONOTONIC, &until);
    }
    turns->waiting[writer]--;
    bool granted = may_take(turns, writer);
    if (writer == ASTER_WRITER_WORKER) {
        turns->worker_wants = !granted;
    }
    if (granted) {
        turns->taken = true;
    } else {
        pthread_cond_broadcast(&turns->changed); /* the other kind may have waited for this one only */
    }
    pthread_mutex_unlock(&turns->mutex);
    if (granted) {
        rest(turns);
    }
    return granted;
}

void aster_turns_give(struct aster_turns *turns, enum aster_writer writer)
{
    int64_t now_ns = monotonic_ns();
    pthread_mutex_lock(&turns->mutex);
    turns->taken = false;
    turns->free_at_ns = now_ns + rest_after(now_ns - turns->taken_at_ns);
    turns->next = writer == ASTER_WRITER_WORKER ? ASTER_WRITER_MUTATION : ASTER_WRITER_WORKER;
    pthread_cond_broadcast(&turns->changed);
    pthread_mutex_unlock(&turns->mutex);
}

void aster_turns_withdraw(struct aster_turns *turns)
{
    pthread_mutex_lock(&turns->mutex);
    turns->worker_wants = false;
    pthread_cond_broadcast(&turns->changed);
    pthread_mutex_unlock(&turns->mutex);
}
