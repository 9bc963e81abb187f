/* The fence: (resource, epoch, holder), handed with each protected write.
 *
 * A fence is not a bearer token: it is worth nothing without the writer's authenticated identity being the holder. The
 * grant is liveness, the fence is safety: only the check at the resource, inside the write, protects the data. */
#ifndef ASTER_FENCE_H
#define ASTER_FENCE_H

#include <stdint.h>

#include "aster/bytes.h"
#include "aster/status.h"

ASTER_BEGIN_DECLS

struct aster_fence {
    struct aster_bytes resource; /* borrowed; see the function that returned the fence */
    int64_t epoch;               /* generation of ownership, 0 = never acquired */
    struct aster_bytes holder;
};

/* Why an operation or a fenced write was refused. */
enum aster_reason {
    ASTER_REASON_NONE = 0,
    ASTER_REASON_HELD_BY_OTHER = 1,     /* acquire or forget: the row is held and not expired, also by oneself */
    ASTER_REASON_EPOCH_MISMATCH = 2,    /* renew, release, revoke: the row moved on */
    ASTER_REASON_NOT_HOLDER = 3,        /* the caller or writer is not the holder */
    ASTER_REASON_EXPIRED = 4,           /* renew: past the ttl; acquire again */
    ASTER_REASON_NOT_HELD = 5,          /* nobody holds the row */
    ASTER_REASON_UNAUTHORIZED = 6,      /* the serializer's authoriser refused */
    ASTER_REASON_REVISION_MISMATCH = 7, /* the value changed since it was read */
    ASTER_REASON_STALE_EPOCH = 8,       /* fence: carried < current; a newer owner exists or existed */
    ASTER_REASON_FUTURE_EPOCH = 9,      /* fence: carried > current; an integrity alarm, never accepted */
    ASTER_REASON_WRONG_RESOURCE = 10,   /* fence: for another resource */
    ASTER_REASON_NO_FENCE = 11          /* a guarded write without any fence declared */
};

/* Upper-case name, for example "STALE_EPOCH". Never NULL. Thread-safe. */
ASTER_API const char *aster_reason_name(enum aster_reason reason);

/* The outcome of a fence check. reason NONE means: the write may run. */
struct aster_verdict {
    enum aster_reason reason;
    int64_t carried_epoch;
    int64_t current_epoch;
};

#define ASTER_VERDICT_INIT                                                                                             \
    {                                                                                                                  \
        ASTER_REASON_NONE, 0, 0                                                                                        \
    }

/* Longest text of a fence: every byte of both names escaped as %XX, a 20-digit epoch, separators and the NUL. */
#define ASTER_FENCE_TEXT_MAX 2400

/* One line of text that survives an environment variable: "aster1:EPOCH:HOLDER:RESOURCE" with every byte of the names
 * outside [A-Za-z0-9._~/@-] written as %XX. Writes a NUL-terminated string. Errors: ASTER_ERR_INVALID when a name
 * is not acceptable, the epoch is negative, or `size` is too small. */
ASTER_API aster_status aster_fence_format(const struct aster_fence *fence, char *text, size_t size,
                                          struct aster_error *error);

/* The inverse. The fence borrows `storage`, which must outlive it. Errors: ASTER_ERR_INVALID with what is wrong. */
ASTER_API aster_status aster_fence_parse(const char *text, char *storage, size_t storage_size,
                                         struct aster_fence *fence, struct aster_error *error);

ASTER_END_DECLS

#endif
