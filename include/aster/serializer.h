/* Calling a serializer: the component that puts grant, renew, release, revoke and fenced writes of a resource in one
 * order, on its own clock. Most programs only open one (memory.h, sqlite.h), hand it to aster_lease_acquire() (lease.h)
 * and write through aster_mutate_fenced(). Every function here is thread-safe unless it says otherwise. */
#ifndef ASTER_SERIALIZER_H
#define ASTER_SERIALIZER_H

#include "aster/fence.h"
#include "aster/operation.h"

ASTER_BEGIN_DECLS

struct aster_serializer; /* created by aster_memory_open(), aster_sqlite_open(), aster_serializer_create(), ... */

/* A decision with the memory behind it. Zero-initialise with ASTER_REPLY_INIT; aster_reply_fini() frees. */
struct aster_reply {
    struct aster_decision decision;
    void *storage; /* private */
};

#define ASTER_REPLY_INIT                                                                                               \
    {                                                                                                                  \
        {0,                                                                                                            \
         (enum aster_operation_kind)0,                                                                                 \
         ASTER_DENIED,                                                                                                 \
         ASTER_REASON_NONE,                                                                                            \
         false,                                                                                                        \
         false,                                                                                                        \
         0,                                                                                                            \
         0,                                                                                                            \
         {{NULL, 0}, 0, false, {NULL, 0}, 0, 0, 0, 0, {NULL, 0}, 0, {NULL, 0}, 0}},                                    \
            NULL                                                                                                       \
    }

/* Deep-copy `decision` into `reply`, replacing what it held. Errors: ASTER_ERR_NOMEM, reply untouched.
 * Not thread-safe on one reply. */
ASTER_API aster_status aster_reply_set(struct aster_reply *reply, const struct aster_decision *decision);

/* Free the memory and zero the reply. NULL and an already finished reply are legal. */
ASTER_API void aster_reply_fini(struct aster_reply *reply);

/* One line about a denial for people: "HELD_BY_OTHER: catalog is held by w1, epoch 3, since ..., remaining 4.2s; ...".
 * Returns the length without the NUL, cut to size. */
ASTER_API size_t aster_decision_describe(const struct aster_decision *decision, char *text, size_t size);

/* Submit one operation and block until it is decided. `timeout_ms` bounds the call (0 = 30 s): a serializer that could
 * not order it in time answers ASTER_ERR_TIMEOUT (not applied) or ASTER_ERR_INDETERMINATE (unknown; repeat the very
 * same operation, id included). An all-zero request_id of a mutating operation is replaced by a random one.
 * ASTER_OK: a decision is in `reply` (which must be initialised); look at reply->decision.outcome.
 * Errors: any status. ASTER_ERR_REENTRANT from inside this serializer's aster_mutation. */
ASTER_API aster_status aster_serializer_call(struct aster_serializer *serializer,
                                             const struct aster_operation *operation, int64_t timeout_ms,
                                             struct aster_reply *reply, struct aster_error *error);

/* A protected write. `tx` is what the serializer's documentation says: NULL (memory), sqlite3 * (SQLite). Return
 * ASTER_OK to commit; any other status rolls back what went through `tx` and is returned to the caller.
 * It runs on the calling thread, with the row locked: keep it short. */
typedef aster_status (*aster_mutation)(void *tx, void *user);

/* Check the fence and the writer, and run `mutation`, in one atomic step. ASTER_OK: look at verdict->reason; NONE
 * means the mutation ran and is committed, anything else means it did not run. A NULL fence, as aster_lease_fence()
 * gives it to a holder that must not act, is NO_FENCE. `writer` is the identity that the
 * caller has authenticated. A rejection is written to the audit history.
 * Errors: what the mutation returned; ASTER_ERR_UNSUPPORTED when this serializer has no fenced write;
 * ASTER_ERR_REENTRANT; ASTER_ERR_BUSY; ASTER_ERR_IO, ASTER_ERR_INDETERMINATE at commit. */
ASTER_API aster_status aster_mutate_fenced(struct aster_serializer *serializer, const struct aster_fence *fence,
                                           struct aster_bytes writer, aster_mutation mutation, void *user,
                                           struct aster_verdict *verdict, struct aster_error *error);

/* Shorthands over aster_serializer_call() with its default timeout. */
ASTER_API aster_status aster_inspect(struct aster_serializer *serializer, struct aster_bytes resource,
                                     struct aster_reply *reply, struct aster_error *error);
/* `expected_epoch` < 0 revokes whatever holds; >= 0 refuses with EPOCH_MISMATCH once the row has moved on. */
ASTER_API aster_status aster_revoke(struct aster_serializer *serializer, struct aster_bytes resource,
                                    struct aster_bytes authority, int64_t expected_epoch, struct aster_reply *reply,
                                    struct aster_error *error);
/* Store the fenced value of a resource (at most 64 KiB) if the fence rule passes and the revision is equal.
 * Errors: ASTER_ERR_INVALID also for a NULL fence, see aster_lease_fence(). */
ASTER_API aster_status aster_put(struct aster_serializer *serializer, const struct aster_fence *fence,
                                 struct aster_bytes writer, int64_t expected_value_revision, struct aster_bytes value,
                                 struct aster_reply *reply, struct aster_error *error);

/* Called for each row. The snapshot lives during the call only; return false to stop. Must not call the serializer. */
typedef bool (*aster_visit_row)(const struct aster_snapshot *snapshot, void *user);

/* Visit the rows whose name starts with `prefix` (empty = all), held or free, in byte order, on the calling thread.
 * Advisory: rows may change between two visits. Errors: ASTER_ERR_UNSUPPORTED, ASTER_ERR_IO, ASTER_ERR_BUSY, ... */
ASTER_API aster_status aster_list(struct aster_serializer *serializer, struct aster_bytes prefix, aster_visit_row visit,
                                  void *user, struct aster_error *error);

struct aster_list_query {
    size_t struct_size;
    struct aster_bytes prefix; /* empty = every resource */
    struct aster_bytes after;  /* only names greater than this in byte order; empty = from the first */
    size_t limit;              /* the first `limit` of those, 0 = all */
};

#define ASTER_LIST_QUERY_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(struct aster_list_query), {NULL, 0}, {NULL, 0}, 0                                                       \
    }

/* The same, page by page: ask again with the last name as `after`. A page costs no more memory than its rows. Errors:
 * as aster_list(). */
ASTER_API aster_status aster_list_page(struct aster_serializer *serializer, const struct aster_list_query *query,
                                       aster_visit_row visit, void *user, struct aster_error *error);

enum aster_event_kind {
    ASTER_EVENT_GRANTED = 1,
    ASTER_EVENT_TAKEOVER = 2,
    ASTER_EVENT_RELEASED = 3,
    ASTER_EVENT_REVOKED = 4,
    ASTER_EVENT_EXPIRED = 5,
    ASTER_EVENT_FORGOTTEN = 6,
    ASTER_EVENT_FENCE_REJECTED = 7, /* reason says why; never counts against the writer's epoch */
    ASTER_EVENT_UNAUTHORIZED = 8
};

/* Lower-case name, for example "fence-rejected". Never NULL. Thread-safe. */
ASTER_API const char *aster_event_name(enum aster_event_kind kind);

/* One line of the audit history, written by the serializer in the same step as the decision. Renewals and puts are
 * not events. Bounded: the oldest go first. */
struct aster_event {
    int64_t revision; /* grows by one or more per event within a store, never reused */
    int64_t unix_ms;  /* wall clock, for display */
    enum aster_event_kind kind;
    enum aster_reason reason; /* FENCE_REJECTED, UNAUTHORIZED */
    struct aster_bytes resource;
    struct aster_bytes actor;    /* candidate, holder, authority or writer; empty for expiry */
    struct aster_bytes previous; /* TAKEOVER, REVOKED, EXPIRED: who held */
    int64_t epoch;               /* the row's epoch after the event */
    int64_t carried_epoch;       /* FENCE_REJECTED: what the writer carried */
};

struct aster_history_query {
    size_t struct_size;
    struct aster_bytes resource; /* empty = every resource */
    int64_t after_revision;      /* only events with a greater revision; 0 = from the oldest kept */
    size_t limit;                /* the newest `limit` of those, 0 = all */
};

#define ASTER_HISTORY_QUERY_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(struct aster_history_query), {NULL, 0}, 0, 0                                                            \
    }

/* Called for each event. The event lives during the call only; return false to stop. Must not call the serializer. */
typedef bool (*aster_visit_event)(const struct aster_event *event, void *user);

/* Visit the kept events that match the query (NULL = all), oldest first, on the calling thread. Errors: as
 * aster_list(). */
ASTER_API aster_status aster_history(struct aster_serializer *serializer, const struct aster_history_query *query,
                                     aster_visit_event visit, void *user, struct aster_error *error);

/* The name of the kind of serializer: "memory", "sqlite", ... Static. */
ASTER_API const char *aster_serializer_name(const struct aster_serializer *serializer);

/* Stop accepting: later requests and waiting ones are answered ASTER_ERR_CLOSED. Does not block. Idempotent. */
ASTER_API void aster_serializer_close(struct aster_serializer *serializer);

/* Close, wait (bounded, 10 s) for what is in flight, and give up the caller's reference; lease handles keep theirs, so
 * the order of destruction does not matter. NULL is legal. Not from inside a mutation or a completion, and
 * not while another thread is in aster_mutate_fenced(), aster_list() or aster_history(): counting those would make
 * every fenced write of every thread touch one cache line. */
ASTER_API void aster_serializer_destroy(struct aster_serializer *serializer);

/* Whoever may decide that an operation is allowed at all (after its shape is checked, before the row is looked at).
 * Returning false answers DENIED{UNAUTHORIZED}; no epoch is used up. An acquire that waits is judged again when its
 * turn comes. Called on serializer threads; must not block or call the serializer. */
typedef bool (*aster_authorizer)(const struct aster_operation *operation, void *user);

ASTER_END_DECLS

#endif
