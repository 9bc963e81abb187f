/* Status codes and error detail.
 *
 * Three different things are kept apart: a *decision* (granted, or denied with a reason: see decision.h) is a normal
 * answer; a *failure* is a negative aster_status; a bug aborts in a debug build. A fallible function returns an
 * aster_status and takes an optional `struct aster_error *` last; outputs are left untouched on failure. */
#ifndef ASTER_STATUS_H
#define ASTER_STATUS_H

#include <stddef.h>

#include "aster/export.h"

ASTER_BEGIN_DECLS

typedef int aster_status; /* 0 or negative */

enum {
    ASTER_OK = 0,
    ASTER_ERR_INVALID = -1,            /* an argument or a configuration is not acceptable; nothing happened */
    ASTER_ERR_NOMEM = -2,              /* out of memory; nothing changed */
    ASTER_ERR_IO = -3,                 /* the store or the operating system failed; nothing was applied */
    ASTER_ERR_TIMEOUT = -4,            /* the deadline passed before the operation was ordered; nothing was applied */
    ASTER_ERR_INDETERMINATE = -5,      /* the operation may or may not have been applied; retry under the same id */
    ASTER_ERR_CLOSED = -6,             /* the serializer or handle is closed; nothing was applied */
    ASTER_ERR_CANCELLED = -7,          /* the caller cancelled; a grant that raced is released */
    ASTER_ERR_LIMIT = -8,              /* a configured limit is reached; the message names it and its value */
    ASTER_ERR_CORRUPT = -9,            /* stored bytes fail their check; the serializer refuses to serve them */
    ASTER_ERR_COUNTER_EXHAUSTED = -10, /* an epoch or revision is at INT64_MAX; nothing changed */
    ASTER_ERR_BUSY = -11,        /* another process or call holds the store's write lock; retry; nothing applied */
    ASTER_ERR_UNREACHABLE = -12, /* the serializer cannot be reached; nothing was applied */
    ASTER_ERR_UNSUPPORTED = -13, /* this serializer or build does not offer the operation */
    ASTER_ERR_VERSION = -14,     /* a stored or encoded version is newer than this build; it never guesses */
    ASTER_ERR_FORKED = -15,      /* the handle belongs to the parent process */
    ASTER_ERR_REENTRANT = -16,   /* refused instead of deadlocking: called from inside this serializer's closure */
    ASTER_ERR_REFUSED = -17      /* a grantor refuses it to this identity, or as things are; nothing happened */
};

#define ASTER_ERROR_MESSAGE_MAX 512 /* bytes, including the NUL */

/* Detail of a failure. One line: what failed, which value, which limit, what to do next. Never a secret, never a
 * stored value. Owned by the caller; a plain value, so it needs no clean-up. */
struct aster_error {
    aster_status status;
    int os_error; /* errno of the failing call, or 0 */
    char message[ASTER_ERROR_MESSAGE_MAX];
};

#define ASTER_ERROR_INIT                                                                                               \
    {                                                                                                                  \
        0, 0,                                                                                                          \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* Upper-case name of a status without the ERR prefix, for example "INVALID". Never NULL. Thread-safe. */
ASTER_API const char *aster_status_name(aster_status status);

ASTER_END_DECLS

#endif
