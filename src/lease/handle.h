/* What the files of the lease house share: the handle, the runtime, and who may touch what.
 *
 * One mutex of the runtime guards every handle's state. Requests are sent, and callbacks run, after it is unlocked. The
 * only field read without it is fence_limit_ns. */
#ifndef LEASE_HANDLE_H
#define LEASE_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "aster/plan.h"
#include "aster/sys/runtime.h"
#include "aster/sys/serializer.h"
#include "platform/sleeper.h"

#define NEVER INT64_MAX
#define NO_FENCE INT64_MIN
#define STATUS_CHANGES_MAX 4 /* HELD, RELEASE_PENDING and an end; one spare */

/* What the handle is doing, finer than its public status. */
enum lease_phase {
    PHASE_ACQUIRE, /* an acquire is in flight, or waits for its retry */
    PHASE_CONFIRM, /* granted long after it was sent (from a queue): a renewal must confirm it first */
    PHASE_HOLD,    /* renewing */
    PHASE_RELEASE, /* a release is in flight, or waits for its retry */
    PHASE_ENDED
};

/* One request of a handle. A handle has one for acquire and renew, and one for release, so that a renewal that hangs
 * does not stand in the way of the release. */
struct lease_request {
    struct aster_request request;
    struct aster_lease *lease;
    bool in_flight;
    bool given_back;     /* the serializer was asked to cancel it */
    int64_t sent_ns;     /* just before this attempt was submitted */
    int64_t deadline_ns; /* after which the attempt counts as failed */
};

struct aster_lease {
    _Atomic(int64_t) fence_limit_ns; /* NO_FENCE = none is supplied */
    const struct aster_clock *clock;
    uint64_t generation; /* of the process, see platform/fork.h */
    struct aster_fence fence;

    struct aster_runtime *runtime;
    struct aster_serializer *serializer;
    struct aster_renew_plan plan;
    aster_lease_callback on_status;
    void *user;
    size_t references; /* the user's, one per request in flight, one per queued callback, one per blocked caller */
    bool destroyed;
    bool blocking; /* of aster_lease_acquire(): its caller does not see the handle unless it is granted */

    enum aster_lease_status status;
    enum aster_lease_reason reason;
    enum lease_phase phase;
    bool quiesced;
    bool abandoned; /* nobody wants the grant any more: release it when it comes */
    bool ambiguous; /* an acquire may have been applied: only a decision under the same id tells */
    uint32_t acquire_flags;
    int64_t limit_ns;      /* the self-limit, also while no fence is supplied */
    int64_t lapse_ns;      /* from then on the serializer has forgotten whatever it may have granted */
    int64_t wait_until_ns; /* of the acquire */
    int64_t timeout_ns;    /* of one acquire attempt */
    int64_t first_sent_ns; /* of the acquire under its present id */
    int64_t retry_ns;      /* the next retry's delay */
    int64_t attempts;      /* renewals sent since the last success */
    int64_t next_ns;       /* when its timer is due; NEVER = not in the heap */
    size_t timer_slot;     /* index + 1 in the heap; 0 = not in it */

    struct lease_request main;
    struct lease_request release;
    aster_status outcome; /* of the acquire; later of the release */
    bool release_answered;
    struct aster_reply grant; /* the acquire's decision, granted or denied */
    struct aster_reply release_reply;
    int64_t renewals;
    int64_t renew_errors;
    struct aster_error last_error;

    pthread_cond_t changed; /* for callers that block on this handle */
    int event_fd;           /* -1 = not made yet */
    unsigned char changes[STATUS_CHANGES_MAX];
    unsigned change_count;
    bool callback_queued;
    struct aster_lease *next_callback;
    struct aster_lease *next_dead;
    char bytes[]; /* resource, holder */
};

struct aster_runtime {
    const struct aster_clock *clock;
    uint64_t generation;
    bool is_virtual;
    size_t handles_max;
    pthread_mutex_t mutex;
    size_t handles;
    struct aster_lease **timers; /* binary heap by next_ns */
    size_t timer_count;
    size_t timer_capacity;
    struct aster_lease *dead; /* freed once the mutex is unlocked */
    uint64_t random[2];
    bool stopping;
    bool orphaned; /* destroyed by its user; the last handle that a serializer still owes an answer frees it */

    struct aster_sleeper sleeper; /* not with a virtual clock */
    int64_t sleeping_until_ns;
    pthread_t renewer;
    pthread_t dispatcher;

    bool dispatching;            /* virtual clock: somebody runs callbacks already */
    struct aster_lease *calling; /* whose callback runs now */
    pthread_t calling_thread;
    pthread_cond_t callbacks_changed;
    pthread_cond_t called;
    struct aster_lease *first_callback;
    struct aster_lease **last_callback;
};

/* What to submit, and what to ask back, once the mutex is unlocked. */
#define OUTBOX_MAX 512
struct outbox {
    struct aster_lease *send[OUTBOX_MAX]; /* lease->main or lease->release, see is_release */
    bool is_release[OUTBOX_MAX];
    struct lease_request *give_back[OUTBOX_MAX];
    size_t send_count;
    size_t give_back_count;
};

static inline void outbox_init(struct outbox *outbox)
{
    outbox->send_count = 0;
    outbox->give_back_count = 0;
}

static inline bool outbox_is_full(const struct outbox *outbox)
{
    return outbox->send_count + 2 > OUTBOX_MAX || outbox->give_back_count + 2 > OUTBOX_MAX;
}

/* runtime.c */
aster_status lease_runtime_default(struct aster_runtime **runtime, struct aster_error *error);
void lease_runtime_lock(struct aster_runtime *runtime);
/* Unlock, then send what is in the outbox (may be NULL), free the dead and, with a virtual clock, run callbacks. */
void lease_runtime_unlock(struct aster_runtime *runtime, struct outbox *outbox);
/* The same, but leave the dead to the dispatcher: for serializers' threads and for the renewing one. Giving up the last
 * reference to a serializer waits for its threads to end, which neither of them may. */
void lease_runtime_unlock_leaving_dead(struct aster_runtime *runtime, struct outbox *outbox);
void lease_runtime_random_id(struct aster_runtime *runtime, unsigned char id[ASTER_REQUEST_ID_SIZE]);
int64_t lease_runtime_jitter(struct aster_runtime *runtime, int64_t value); /* +- a quarter */

/* timers.c; all of what follows is called with the mutex locked */
bool lease_timers_reserve(struct aster_runtime *runtime, size_t handles);
void lease_timer_set(struct aster_lease *lease, int64_t next_ns);

/* dispatcher.c */
void lease_dispatcher_queue(struct aster_lease *lease);
void lease_dispatcher_drain(struct aster_runtime *runtime);
void lease_dispatcher_forget(struct aster_lease *lease);
void *lease_dispatcher_main(void *argument);

/* handle.c */
aster_status lease_create(struct aster_runtime *runtime, struct aster_serializer *serializer,
                          struct aster_bytes resource, struct aster_bytes holder,
                          const struct aster_lease_options *options, const struct aster_renew_plan *plan,
                          struct aster_lease **lease, struct aster_error *error);
void lease_free(struct aster_lease *lease); /* unlocked */
void lease_unref(struct aster_lease *lease);
void lease_set_status(struct aster_lease *lease, enum aster_lease_status status, enum aster_lease_reason reason);
void lease_supply(struct aster_lease *lease); /* publish limit_ns when a fence may be supplied, else NO_FENCE */
void lease_end(struct aster_lease *lease, enum aster_lease_status status, enum aster_lease_reason reason);
void lease_note_error(struct aster_lease *lease, aster_status status, const struct aster_error *error);

/* request.c */
void lease_request_send(struct aster_lease *lease, struct lease_request *request, int64_t deadline_ns,
                        struct outbox *outbox);
void lease_request_give_back(struct lease_request *request, struct outbox *outbox);
bool lease_status_is_transient(aster_status status);
int64_t lease_next_retry(struct aster_lease *lease, int64_t first_ns, int64_t last_ns); /* delay from now, jittered */

/* acquire.c, renew.c, release.c */
void lease_acquire_begin(struct aster_lease *lease, struct outbox *outbox);
void lease_acquire_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox);
void lease_acquire_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                          const struct aster_error *error, struct outbox *outbox);
void lease_acquire_abandon(struct aster_lease *lease, aster_status outcome, struct outbox *outbox);
void lease_hold_begin(struct aster_lease *lease, int64_t sent_ns);
void lease_renew_send(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox);
void lease_renew_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox);
void lease_renew_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                        const struct aster_error *error);
enum aster_lease_reason lease_denial_reason(const struct aster_lease *lease, const struct aster_decision *decision);
void lease_release_begin(struct aster_lease *lease, struct outbox *outbox);
void lease_release_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox);
void lease_release_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                          const struct aster_error *error);

#endif
