/* For those who write a serializer. Two ways:
 *
 *  1. A blocking function that runs your own transaction and calls aster_transition() inside it: give it to
 *     aster_blocking_serializer_create(). About 30 lines; see examples/own_serializer.c.
 *  2. The vtable below, when you complete requests asynchronously yourself.
 *
 * Either way, run the conformance suite over it (aster/sys/conformance.h). */
#ifndef ASTER_SYS_SERIALIZER_H
#define ASTER_SYS_SERIALIZER_H

#include "aster/serializer.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

/* One operation on its way to a decision. Memory: the submitter owns the request and all bytes it refers to, and keeps
 * them alive and unchanged until complete() is called; from the call on, the serializer must not touch it again. */
struct aster_request {
    size_t struct_size;
    struct aster_operation operation;
    int64_t deadline_ns;   /* CLOCK_BOOTTIME (or the serializer's virtual clock); an operation that is not ordered by
                              then is answered ASTER_ERR_TIMEOUT and never applied later; 0 = none */
    int64_t wait_until_ns; /* acquire only: while HELD_BY_OTHER, keep it queued until then; 0 = answer at once. Only
                              looked at by serializers that set ASTER_SERIALIZER_QUEUES_WAITERS */
    /* The one answer: status ASTER_OK and a decision, or a failure and a detail (either may be NULL). Both live during
     * the call only. Called exactly once, at once from inside submit() or later, from any thread, with none of the
     * serializer's locks held. It must not block, and must not call back into the same serializer other than
     * through submit(). */
    void (*complete)(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error);
    void *user;                 /* the submitter's */
    struct aster_request *next; /* the serializer's, while it owns the request */
    void *slot[2];              /* the serializer's, while it owns the request */
};

#define ASTER_REQUEST_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(struct aster_request), ASTER_OPERATION_INIT, 0, 0, NULL, NULL, NULL,                                    \
        {                                                                                                              \
            NULL, NULL                                                                                                 \
        }                                                                                                              \
    }

enum aster_serializer_traits {
    ASTER_SERIALIZER_QUEUES_WAITERS = 1 /* submit() honours wait_until_ns and wakes a waiter by itself; without it, the
                                           lease handle polls with jitter, guided by the remaining time */
};

struct aster_serializer_ops {
    size_t struct_size; /* grows; slots beyond the given size count as NULL */
    const char *name;   /* static, lower case */
    uint32_t traits;    /* aster_serializer_traits */

    /* Take one operation and answer it once through request->complete. Any thread; must not block on I/O or on user
     * code (the renewing thread calls it). Never fails by itself: failures are answers. */
    void (*submit)(void *self, struct aster_request *request);
    /* The same for several at once (renewals come in batches). NULL: submit() is called for each. */
    void (*submit_many)(void *self, struct aster_request **requests, size_t count);
    /* A submitted request is no longer wanted. If it is still waiting or queued, answer it ASTER_ERR_CANCELLED soon;
     * if it is being decided, or has been answered, do nothing (so never look at *request unless it is known to be
     * queued). Any thread; must not block. NULL: the submitter waits. */
    void (*cancel)(void *self, struct aster_request *request);
    /* Stop accepting; answer what waits with ASTER_ERR_CLOSED. Any thread, more than once; must not block. */
    void (*close)(void *self);
    /* Block until every request has been answered, or for timeout_ms: ASTER_OK or ASTER_ERR_TIMEOUT. Any thread but
     * the serializer's own. */
    aster_status (*wait)(void *self, int64_t timeout_ms);
    /* Free everything. Called once, by one thread, after close(); may block for threads to end. */
    void (*destroy)(void *self);

    /* Optional: check fence and writer and run the mutation in one atomic step, on the calling thread; may block.
     * `self` must refuse re-entry from inside the mutation (ASTER_ERR_REENTRANT) and never deadlock. */
    aster_status (*mutate_fenced)(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                  aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                  struct aster_error *error);
    /* Optional, advisory reads; may block. */
    aster_status (*list)(void *self, struct aster_bytes prefix, aster_visit_row visit, void *user,
                         struct aster_error *error);
    aster_status (*history)(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                            struct aster_error *error);
    /* Optional: list() that begins and ends where the query says; with it list() may be NULL. */
    aster_status (*list_page)(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                              struct aster_error *error);
};

/* Wrap a vtable; `clock` judges request deadlines (NULL = the system clock). On failure the caller keeps `self`.
 * On success the serializer owns it and calls destroy(self) at the end. */
ASTER_API aster_status aster_serializer_create(const struct aster_serializer_ops *ops, void *self,
                                               const struct aster_clock *clock, struct aster_serializer **serializer,
                                               struct aster_error *error);

/* Submit asynchronously; see struct aster_request for who owns what. Any thread; does not block. */
ASTER_API void aster_serializer_submit(struct aster_serializer *serializer, struct aster_request *request);
/* The same for `count` requests at once; the array is the caller's again on return. */
ASTER_API void aster_serializer_submit_many(struct aster_serializer *serializer, struct aster_request **requests,
                                            size_t count);
/* The vtable's cancel(); no effect when the serializer has none. Any thread; does not block. */
ASTER_API void aster_serializer_cancel(struct aster_serializer *serializer, struct aster_request *request);
/* The vtable's traits. Thread-safe. */
ASTER_API uint32_t aster_serializer_traits_of(const struct aster_serializer *serializer);
/* The clock that judges this serializer's deadlines; lives as long as the serializer. Never NULL. Thread-safe. */
ASTER_API const struct aster_clock *aster_serializer_clock(const struct aster_serializer *serializer);
/* The `self` behind a serializer whose vtable is `ops`, or NULL when it is another one. */
ASTER_API void *aster_serializer_self(struct aster_serializer *serializer, const struct aster_serializer_ops *ops);
/* One more reference (a handle keeps its serializer alive so). Returns `serializer`. Thread-safe. */
ASTER_API struct aster_serializer *aster_serializer_ref(struct aster_serializer *serializer);
/* Give one reference up; the last one destroys, which may block for threads to end. NULL is legal. Thread-safe. */
ASTER_API void aster_serializer_unref(struct aster_serializer *serializer);

/* Your transaction: load the row, judge expiry on your own clock, call aster_transition(), store the row if
 * effect.changed (delete it if effect.removed), commit, and aster_reply_set() the decision. May block; called on one
 * of the helper's own threads, `threads` calls at most at a time, never two for one resource at once when threads
 * is 1. Any failure status is answered as it is; use ASTER_ERR_INDETERMINATE when the commit may have happened. */
typedef aster_status (*aster_blocking_transition)(void *user, const struct aster_operation *operation,
                                                  struct aster_reply *reply, struct aster_error *error);

struct aster_blocking_options {
    size_t struct_size;
    const char *name;                /* static; NULL = "app" */
    unsigned threads;                /* 0 = 1 */
    size_t queue_max;                /* requests waiting for a thread; more are refused with ASTER_ERR_LIMIT */
    const struct aster_clock *clock; /* NULL = the system clock */
    struct aster_limits limits;
    aster_status (*mutate_fenced)(void *user, const struct aster_fence *fence, struct aster_bytes writer,
                                  aster_mutation mutation, void *mutation_user, struct aster_verdict *verdict,
                                  struct aster_error *error); /* optional */
    void (*destroy)(void *user);                              /* optional; called once at the end */
};

#define ASTER_BLOCKING_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(struct aster_blocking_options), NULL, 1, 65536, NULL, ASTER_LIMITS_INIT, NULL, NULL                     \
    }

/* A serializer over your blocking function; it is called with `user` from the helper's own threads. options may be
 * NULL. On failure the caller keeps `user`. Errors: ASTER_ERR_INVALID, ASTER_ERR_NOMEM, ASTER_ERR_IO (no thread). */
ASTER_API aster_status aster_blocking_serializer_create(aster_blocking_transition transition, void *user,
                                                        const struct aster_blocking_options *options,
                                                        struct aster_serializer **serializer,
                                                        struct aster_error *error);

ASTER_END_DECLS

#endif
