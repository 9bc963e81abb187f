#include "serializer/sqlite/turns.h"

#include <errno.h>
#include <time.h>

#include "base/checked.h"

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

bool aster_turns_take(struct aster_turns *turns, enum aster_writer writer, int64_t wait_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until_ns = aster_add_saturated((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, wait_ns);
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
    return granted;
}

void aster_turns_give(struct aster_turns *turns, enum aster_writer writer)
{
    pthread_mutex_lock(&turns->mutex);
    turns->taken = false;
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
