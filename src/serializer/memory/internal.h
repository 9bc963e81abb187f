/* What the files of the memory serializer share. Lock order: one stripe, then the history; never two stripes, other
 * than all of them in aster_memory_freeze(). */
#ifndef MEMORY_INTERNAL_H
#define MEMORY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "aster/memory.h"
#include "aster/sys/serializer.h"
#include "engine/table.h"
#include "platform/sleeper.h"
#include "serializer/memory/commit.h"
#include "serializer/memory/history.h"
#include "serializer/memory/links.h"
#include "serializer/memory/timers.h"

struct memory_queue;

/* An acquire that waits for its turn. In the queue of its resource, in the stripe's timers (when to give up) and in the
 * stripe's index by request (to find it for cancel). */
struct memory_waiter {
    struct memory_link link;
    struct memory_timer timer;
    struct aster_request *request;
    struct memory_queue *queue;
    struct memory_waiter *previous;
    struct memory_waiter *next; /* in the queue, later in the outbox */
    aster_status status;
    struct aster_reply reply;
};

/* Who waits for one resource, first in, first out. Exists only while somebody waits; then the row is held, and the
 * timer goes off when its lease may have expired. */
struct memory_queue {
    struct memory_link link;
    struct memory_timer timer;
    struct memory_waiter *first;
    struct memory_waiter *last;
    size_t count;
    size_t name_size;
    char name[];
};

/* Waiters that were answered under the lock and are told once it is free. */
struct memory_outbox {
    struct memory_waiter *first;
    struct memory_waiter **tail;
};

/* A cancel that met a locked stripe. */
struct memory_cancel {
    const struct aster_request *request;
    struct memory_cancel *next;
};

/* What a stripe owes to those who met it locked, see stripe.c. */
enum memory_duty { MEMORY_DUTY_TIMERS = 1, MEMORY_DUTY_CLOSE = 2 };

struct memory_stripe {
    _Alignas(128) pthread_mutex_t mutex; /* 128: neighbours share no pair of cache lines, which are fetched together */
    struct aster_table *table;
    struct aster_request *inbox;          /* under the lock: mail taken in, oldest first */
    _Atomic(struct aster_request *) mail; /* requests that met the stripe locked, newest first */
    _Atomic(struct memory_cancel *) cancels;
    _Atomic(unsigned) duties; /* memory_duty */
    _Atomic(size_t) work;     /* of all these; 0 = whoever unlocks is done */
    bool serving;             /* under the lock: what is decided is for who is first in line */
    _Atomic(bool) closed;
    _Atomic(size_t) waiting;    /* changed under the lock, read without it to skip stripes where nobody waits */
    _Atomic(size_t) unanswered; /* requests taken and not completed */
    struct memory_links queues;
    struct memory_links requests;
    struct memory_links changes; /* not durable yet, by resource; empty without a committer */
    struct memory_timers timers;
};

struct memory {
    struct memory_stripe *stripes;
    uint64_t stripe_mask;
    struct aster_hash_key key;
    struct aster_clock clock;
    struct aster_limits limits;
    aster_authorizer authorize;
    void *authorize_user;
    struct memory_history history;
    struct memory_committer committer; /* take is NULL: nothing is made durable */
    _Atomic(int64_t) durable_floor;
    _Atomic(uint64_t) undone; /* rows */
    _Atomic(int64_t) floor; /* of all stripes; each table learns it before it is asked about a row that may be absent */
    _Atomic(size_t) rows;
    _Atomic(size_t) waiters;
    /* The alarm: wakes for the earliest timer of all stripes. */
    pthread_mutex_t alarm_mutex;
    bool alarm_started;
    _Atomic(bool) alarm_stop;
    _Atomic(int64_t) alarm_at_ns;
    struct aster_sleeper sleeper;
    pthread_t alarm_thread;
};

extern const struct aster_serializer_ops aster_memory_ops;

static inline struct memory_stripe *memory_stripe_of(const struct memory *memory, uint64_t hash)
{
    return &memory->stripes[(hash >> 32) & memory->stripe_mask]; /* the table uses the low half */
}

/* stripe.c. Those who may block lock; those who must not try, and leave their work to whoever holds the lock. */
void aster_memory_stripe_lock(struct memory_stripe *stripe);
/* Unlock, and do what was left meanwhile, unless somebody else has the lock by then and will. */
void aster_memory_stripe_unlock(struct memory *memory, struct memory_stripe *stripe);
void aster_memory_stripe_leave_request(struct memory *memory, struct memory_stripe *stripe,
                                       struct aster_request *request);
void aster_memory_stripe_leave_cancel(struct memory *memory, struct memory_stripe *stripe,
                                      const struct aster_request *request);
/* Run the timers that are due; the instant of the next one, or INT64_MAX when there is none or another will do it. */
int64_t aster_memory_stripe_run_timers(struct memory *memory, struct memory_stripe *stripe);
void aster_memory_stripe_close(struct memory *memory, struct memory_stripe *stripe);

/* decide.c: the stripe's lock is held by the caller. Apply one operation, keep the counts, write the history. With
 * *held the answer to `request` is the committer's business and no longer the caller's. */
aster_status aster_memory_apply(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                struct aster_request *request, int64_t now_ns, struct aster_table_result *result,
                                bool *held, struct aster_error *error);
/* Whoever may not do it is denied, and that is written down. */
aster_status aster_memory_deny_unauthorized(struct memory *memory, struct memory_stripe *stripe,
                                            const struct aster_operation *operation, int64_t now_ns,
                                            struct aster_reply *reply, struct aster_error *error);
/* With the stripe locked: order the request, unlock, and tell. Only the mutex is unlocked, no work is looked for. */
void aster_memory_order(struct memory *memory, struct memory_stripe *stripe, struct aster_request *request);
/* Take over the floor that other stripes may have raised. */
void aster_memory_learn_floor(struct memory *memory, struct memory_stripe *stripe);

/* waiting.c: with the stripe's lock held. */
struct memory_queue *aster_memory_queue_find(struct memory_stripe *stripe, uint64_t hash, struct aster_bytes resource);
aster_status aster_memory_wait_in_line(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                       struct aster_request *request, struct aster_error *error);
/* As aster_memory_wait_in_line(), in front of all others and whatever the limits are: it was first before. The row is
 * looked at by `again_ns`. False = no memory. */
bool aster_memory_wait_first(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                             struct aster_request *request, int64_t again_ns);
/* Grant the first live waiter if the row is to be had; answer the dead ones before it. May free `queue`. */
void aster_memory_queue_serve(struct memory *memory, struct memory_stripe *stripe, struct memory_queue *queue,
                              int64_t now_ns, struct memory_outbox *outbox);
void aster_memory_timers_run(struct memory *memory, struct memory_stripe *stripe, int64_t now_ns,
                             struct memory_outbox *outbox);
void aster_memory_waiters_answer_all(struct memory *memory, struct memory_stripe *stripe, aster_status status,
                                     struct memory_outbox *outbox);
void aster_memory_outbox_init(struct memory_outbox *outbox);
/* Without any lock. */
void aster_memory_outbox_send(struct memory_stripe *stripe, struct memory_outbox *outbox);
void aster_memory_cancel_locked(struct memory *memory, struct memory_stripe *stripe,
                                const struct aster_request *request, struct memory_outbox *outbox);

/* alarm.c. start(): make sure that somebody will run what is due. Errors: ASTER_ERR_IO. */
aster_status aster_memory_alarm_start(struct memory *memory, struct aster_error *error);
void aster_memory_alarm_stop(struct memory *memory);
/* A timer was set for `at_ns`. Without any lock. */
void aster_memory_alarm_set(struct memory *memory, int64_t at_ns);

/* fenced.c, list.c */
aster_status aster_memory_mutate_fenced(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                        aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                        struct aster_error *error);

/* commit.c: with the stripe's lock held. */
static inline bool memory_commits(const struct memory *memory)
{
    return memory->committer.take != NULL;
}
/* Hand over what `request` changed. Errors: ASTER_ERR_NOMEM; the row is as before. */
aster_status aster_memory_commit(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                 struct aster_request *request, const struct aster_table_result *result,
                                 const struct aster_event *event, struct aster_table_image *image,
                                 struct aster_error *error);
/* Hand over an event that nobody waits for. */
void aster_memory_commit_event(struct memory *memory, struct memory_stripe *stripe, const struct aster_event *event);
/* Does an answer about the resource tell of something that is not durable? Then it is handed over, *reply with it. */
aster_status aster_memory_hold(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                               struct aster_request *request, struct aster_reply *reply, bool *held,
                               struct aster_error *error);
void aster_memory_raise(_Atomic(int64_t) *floor, int64_t to);

/* When something was granted, on the wall clock; 0 = unknown. */
int64_t aster_memory_since_unix_ms(const struct memory *memory, int64_t since_ns, int64_t now_ns);

#endif
