/* Many at once: one of them wins, and no accepted write is lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "kit.h"

#define THREADS 4
#define ROUNDS 20
#define WRITES 25

struct crowd {
    struct aster_serializer *serializer;
    int64_t ttl_ms;
    pthread_barrier_t start;
    _Atomic(int) granted;
    _Atomic(int) failed;
    int64_t winner_epoch; /* written by the one winner of a round */
    char winner[16];
    int counter; /* guarded by the lease and nothing else */
    _Atomic(int) accepted;
    _Atomic(int) next_id;
};

static aster_status call(struct crowd *crowd, const struct aster_operation *operation, struct aster_reply *reply)
{
    aster_status status = aster_serializer_call(crowd->serializer, operation, 0, reply, NULL);
    if (status != ASTER_OK) {
        atomic_fetch_add(&crowd->failed, 1);
    }
    return status;
}

static void *race(void *user)
{
    struct crowd *crowd = user;
    char name[16];
    snprintf(name, sizeof name, "w%d", atomic_fetch_add(&crowd->next_id, 1));
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "r", name, 0);
    operation.ttl_ms = crowd->ttl_ms;
    pthread_barrier_wait(&crowd->start);
    if (call(crowd, &operation, &reply) == ASTER_OK && reply.decision.outcome == ASTER_GRANTED) {
        atomic_fetch_add(&crowd->granted, 1);
        crowd->winner_epoch = reply.decision.epoch;
        memcpy(crowd->winner, name, sizeof name);
    }
    aster_reply_fini(&reply);
    return NULL;
}

static int run_threads(struct crowd *crowd, void *(*work)(void *user))
{
    pthread_t threads[THREADS];
    int started = 0;
    pthread_barrier_init(&crowd->start, NULL, THREADS);
    while (started < THREADS && pthread_create(&threads[started], NULL, work, crowd) == 0) {
        started++;
    }
    if (started < THREADS) {
        return -1; /* the barrier keeps those that run; the process is out of threads anyway */
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&crowd->start);
    return 0;
}

static void of_candidates_that_race_exactly_one_is_granted(struct scenario *s)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd = {.serializer = s->serializer, .ttl_ms = 60000};
        EXPECT(run_threads(&crowd, race) == 0);
        EXPECT(crowd.failed == 0);
        EXPECT(crowd.granted == 1);
        EXPECT(crowd.winner_epoch == 2 * round + 1);
        EXPECT(release(s, "r", crowd.winner, crowd.winner_epoch) == ASTER_REASON_NONE);
    }
}

static aster_status increment(void *tx, void *user)
{
    (void)tx;
    struct crowd *crowd = user;
    crowd->counter++;
    return ASTER_OK;
}

/* Acquire, write, sometimes be revoked in between: the fence decides what counts. */
static void *write_in_turns(void *user)
{
    struct crowd *crowd = user;
    int id = atomic_fetch_add(&crowd->next_id, 1);
    char name[16];
    snprintf(name, sizeof name, "w%d", id);
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "r", name, 0);
    operation.ttl_ms = crowd->ttl_ms;
    pthread_barrier_wait(&crowd->start);
    for (int i = 0; i < WRITES; i++) {
        if (call(crowd, &operation, &reply) != ASTER_OK || reply.decision.outcome != ASTER_GRANTED) {
            continue;
        }
        const struct aster_fence fence = {operation.resource, reply.decision.epoch, operation.caller};
        struct aster_verdict verdict = ASTER_VERDICT_INIT;
        if (id == 0 && i % 3 == 0) { /* by one thread only: in lockstep all of them would end each other for ever */
            const struct aster_operation ending = op(ASTER_OP_REVOKE, "r", "operator", 0);
            call(crowd, &ending, &reply);
        }
        aster_status status =
            aster_mutate_fenced(crowd->serializer, &fence, operation.caller, increment, crowd, &verdict, NULL);
        if (status == ASTER_OK && verdict.reason == ASTER_REASON_NONE) {
            atomic_fetch_add(&crowd->accepted, 1);
        } else if (status != ASTER_OK) {
            atomic_fetch_add(&crowd->failed, 1);
        }
        const struct aster_operation ending = op(ASTER_OP_RELEASE, "r", name, fence.epoch);
        call(crowd, &ending, &reply);
    }
    aster_reply_fini(&reply);
    return NULL;
}

static void accepted_writes_of_many_threads_are_never_lost(struct scenario *s)
{
    int runs = 0;
    SKIP_IF(write_as(s, "r", 1, "a", "a", &runs) == FAILED && s->status == ASTER_ERR_UNSUPPORTED,
            "the serializer offers no fenced write");
    struct crowd crowd = {.serializer = s->serializer, .ttl_ms = 60000};
    EXPECT(run_threads(&crowd, write_in_turns) == 0);
    EXPECT(crowd.failed == 0);
    EXPECT(crowd.counter == crowd.accepted);
    EXPECT(crowd.accepted > 0);
}

const struct scenario_entry aster_conformance_threads[] = {
    {"of candidates that race exactly one is granted", of_candidates_that_race_exactly_one_is_granted},
    {"accepted writes of many threads are never lost", accepted_writes_of_many_threads_are_never_lost},
    {NULL, NULL},
};
