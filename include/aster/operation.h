/* What a serializer orders: one operation on one resource, and the decision about it. Plain data. */
#ifndef ASTER_OPERATION_H
#define ASTER_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"
#include "aster/fence.h"
#include "aster/limits.h"
#include "aster/status.h"

ASTER_BEGIN_DECLS

enum aster_operation_kind {
    ASTER_OP_ACQUIRE = 1,
    ASTER_OP_RENEW = 2,
    ASTER_OP_RELEASE = 3,
    ASTER_OP_REVOKE = 4,
    ASTER_OP_EXPIRE = 5, /* issued by serializers, not by clients */
    ASTER_OP_PUT = 6,
    ASTER_OP_FORGET = 7,
    ASTER_OP_INSPECT = 8
};

/* Lower-case verb, for example "acquire"; "unknown" otherwise. Never NULL. Thread-safe. */
ASTER_API const char *aster_operation_name(enum aster_operation_kind kind);

enum aster_operation_flags {
    ASTER_OP_TAKE_OVER_OWN = 1,   /* acquire: also when the holder is the candidate itself; gives a new epoch */
    ASTER_OP_EXPIRED_VERDICT = 2, /* acquire: epoch and lease_revision name the lease that the leader judged expired;
                                     honoured only while both still match (replicated and journalled serializers) */
    ASTER_OP_EXPECT_EPOCH = 4,    /* revoke: refuse with EPOCH_MISMATCH unless the row's epoch is `epoch` */
    ASTER_OP_WITH_VALUE = 8       /* release: store `value` if value_revision is equal, in the same step */
};

/* The bytes behind the views belong to whoever built the operation, until it has been answered. */
struct aster_operation {
    size_t struct_size;
    enum aster_operation_kind kind;
    uint32_t flags; /* aster_operation_flags */
    struct aster_bytes resource;
    struct aster_bytes caller; /* the authenticated identity: candidate, holder, authority or writer */
    unsigned char request_id[ASTER_REQUEST_ID_SIZE]; /* random; all zero = no protection against a repeat */
    int64_t ttl_ms;                                  /* acquire */
    int64_t epoch;             /* renew, release, put (carried), expire, revoke with EXPECT_EPOCH */
    int64_t lease_revision;    /* expire, EXPIRED_VERDICT */
    int64_t value_revision;    /* put, release WITH_VALUE: the revision the caller last saw */
    struct aster_bytes value;  /* put, release WITH_VALUE */
    struct aster_bytes holder; /* put: the fence's holder */
};

#define ASTER_OPERATION_INIT                                                                                           \
    {                                                                                                                  \
        sizeof(struct aster_operation), (enum aster_operation_kind)0, 0, {NULL, 0}, {NULL, 0}, {0}, 0, 0, 0, 0,        \
            {NULL, 0},                                                                                                 \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }

/* An advisory view of a row: stale the moment it is returned, so nothing may gate a write on it. */
struct aster_snapshot {
    struct aster_bytes resource;
    int64_t epoch;
    bool held;
    struct aster_bytes holder; /* empty when free */
    int64_t ttl_ms;
    int64_t remaining_ns;   /* 0..ttl on the serializer's clock; 0 when free or expired */
    int64_t since_unix_ms;  /* when this epoch was granted, wall clock, for display only; 0 = unknown */
    int64_t lease_revision; /* counts renewals of this row, never reset */
    struct aster_bytes value;
    int64_t value_revision;
    struct aster_bytes last_holder; /* who held before, and under which epoch; empty and 0 when nobody did */
    int64_t last_epoch_held;
};

enum aster_outcome { ASTER_DENIED = 0, ASTER_GRANTED = 1 };

/* The answer to an operation. A denial is an answer, not an error: it carries why and a snapshot. */
struct aster_decision {
    size_t struct_size;
    enum aster_operation_kind kind;
    enum aster_outcome outcome;
    enum aster_reason reason;       /* NONE when granted */
    bool replayed;                  /* the same id from the same caller was applied before; nothing happened again */
    bool takeover;                  /* acquire: an expired lease, or one's own earlier one, was replaced */
    int64_t epoch;                  /* granted: the epoch this operation produced or confirmed; denied: the row's */
    int64_t carried_epoch;          /* what the operation carried, for messages; 0 for acquire and inspect */
    struct aster_snapshot snapshot; /* of the row after the decision */
};

/* Check an operation's shape: names, identities, ttl, sizes, known kind and flags, non-negative counters.
 * Every serializer calls it before it orders anything. Errors: ASTER_ERR_INVALID. Pure, thread-safe. */
ASTER_API aster_status aster_operation_check(const struct aster_operation *operation, const struct aster_limits *limits,
                                             struct aster_error *error);

ASTER_END_DECLS

#endif
