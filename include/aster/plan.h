/* Choosing times. Pure; thread-safe. */
#ifndef ASTER_PLAN_H
#define ASTER_PLAN_H

#include <stdint.h>

#include "aster/limits.h"
#include "aster/status.h"

ASTER_BEGIN_DECLS

/* The times of one lease, checked against each other. */
struct aster_renew_plan {
    int64_t ttl_ms;
    int64_t renew_interval_ms;
    int64_t margin_ms;
    int64_t drift_ppm;
};

/* Fill in defaults (ASTER_LEASE_DEFAULT) and check: ttl within limits (NULL = defaults), 0 <= margin < ttl,
 * 0 < renew interval < ttl - margin - ttl * drift. Errors: ASTER_ERR_INVALID with the inequality and the numbers. */
ASTER_API aster_status aster_renew_plan_make(int64_t ttl_ms, int64_t renew_interval_ms, int64_t margin_ms,
                                             int64_t drift_ppm, const struct aster_limits *limits,
                                             struct aster_renew_plan *plan, struct aster_error *error);

/* The self-limit of a grant or renewal that was sent at `sent_ns`: sent + ttl - margin - ttl * drift. Saturates. */
ASTER_API int64_t aster_renew_plan_limit_ns(const struct aster_renew_plan *plan, int64_t sent_ns);

/* What a user knows, in milliseconds; < 0 = not given. */
struct aster_plan_inputs {
    int64_t work_ms;    /* typical duration of the guarded work */
    int64_t pause_ms;   /* longest pause or outage that a holder should survive without losing the lease */
    int64_t recover_ms; /* longest time until another worker may take over after the holder died */
};

struct aster_plan {
    struct aster_renew_plan renew;
    int64_t tolerated_pause_ms; /* longest gap between two renewals that keeps the lease */
    int64_t takeover_ms;        /* worst time from the holder's last renewal to the successor's grant */
};

/* Derive ttl, renew interval and margin. Errors: ASTER_ERR_INVALID naming the two inputs that conflict, with numbers.
 */
ASTER_API aster_status aster_plan_derive(const struct aster_plan_inputs *inputs, struct aster_plan *plan,
                                         struct aster_error *error);

ASTER_END_DECLS

#endif
