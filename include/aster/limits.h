/* Limits of names, values and durations, and the checks that enforce them. The checks are pure and thread-safe. */
#ifndef ASTER_LIMITS_H
#define ASTER_LIMITS_H

#include <stdint.h>

#include "aster/bytes.h"
#include "aster/status.h"

ASTER_BEGIN_DECLS

#define ASTER_RESOURCE_MAX 512           /* bytes of a resource name (docs/rules.md) */
#define ASTER_IDENTITY_MAX 256           /* bytes of a holder, candidate, writer or authority (docs/rules.md) */
#define ASTER_VALUE_MAX 65536            /* bytes of a fenced value: 64 KiB (docs/rules.md) */
#define ASTER_REQUEST_ID_SIZE 16         /* bytes of a request id (docs/rules.md) */
#define ASTER_TTL_MIN_MS 100             /* default lower bound of a ttl: 100 ms (docs/rules.md) */
#define ASTER_TTL_MAX_MS 86400000        /* default upper bound of a ttl: 24 h (docs/rules.md) */
#define ASTER_TTL_HARD_MAX_MS 4294967295 /* what a configured bound cannot exceed: 2^32-1 ms, about 49 days */

/* Configurable limits of one serializer. Exceeding one is answered with ASTER_ERR_LIMIT (counts) or
 * ASTER_ERR_INVALID (ttl, value) and a message that carries the limit's name and value. */
struct aster_limits {
    size_t struct_size;
    int64_t ttl_min_ms;
    int64_t ttl_max_ms;
    size_t value_max_bytes;
    size_t resources_max; /* rows, held or free */
    size_t waiters_per_resource_max;
    size_t waiters_total_max;
};

#define ASTER_LIMITS_INIT                                                                                              \
    {                                                                                                                  \
        sizeof(struct aster_limits), ASTER_TTL_MIN_MS, ASTER_TTL_MAX_MS, ASTER_VALUE_MAX, 16777216, 16384, 1048576     \
    }

/* Accept 1..ASTER_RESOURCE_MAX bytes of valid UTF-8 without control characters (U+0000..U+001F, U+007F..U+009F).
 * Errors: ASTER_ERR_INVALID with the length or the offending offset. */
ASTER_API aster_status aster_resource_check(struct aster_bytes resource, struct aster_error *error);

/* The same rules for an identity of 1..ASTER_IDENTITY_MAX bytes; `role` names it in the message ("holder"). */
ASTER_API aster_status aster_identity_check(struct aster_bytes identity, const char *role, struct aster_error *error);

/* Accept a ttl within the limits. Errors: ASTER_ERR_INVALID naming the value, the unit and both bounds. */
ASTER_API aster_status aster_ttl_check(int64_t ttl_ms, const struct aster_limits *limits, struct aster_error *error);

ASTER_END_DECLS

#endif
