/* The arithmetic of a lease's times. Pure. */
#include <inttypes.h>

#include "aster/lease.h"
#include "aster/plan.h"
#include "base/checked.h"
#include "base/error.h"

#define DRIFT_MAX_PPM 100000 /* 10 %: worse than any clock that is worth measuring a lease with */

static int64_t drift_ns(int64_t ttl_ms, int64_t drift_ppm)
{
    return ttl_ms * drift_ppm; /* ttl_ms * 1e6 ns * ppm / 1e6; at most 2^32 * 1e5 */
}

static aster_status check_margin(const struct aster_renew_plan *plan, struct aster_error *error)
{
    if (plan->drift_ppm < 0 || plan->drift_ppm > DRIFT_MAX_PPM) {
        return aster_error_set(error, ASTER_ERR_INVALID, "drift is %" PRId64 " ppm: allowed are 0 to %d ppm",
                               plan->drift_ppm, DRIFT_MAX_PPM);
    }
    if (plan->margin_ms < 0 || plan->margin_ms >= plan->ttl_ms) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "margin %" PRId64 " ms must be 0 or more and less than ttl %" PRId64
                               " ms: shorten the margin or lengthen the ttl",
                               plan->margin_ms, plan->ttl_ms);
    }
    return ASTER_OK;
}

static aster_status check_interval(const struct aster_renew_plan *plan, struct aster_error *error)
{
    int64_t usable_ns = aster_renew_plan_limit_ns(plan, 0);
    if (plan->renew_interval_ms > 0 && aster_ms_to_ns(plan->renew_interval_ms) < usable_ns) {
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "renew interval %" PRId64
                           " ms must be more than 0 and less than ttl - margin - drift = %" PRId64 " - %" PRId64
                           " - %.1f = %.1f ms: renew more often or lengthen the ttl",
                           plan->renew_interval_ms, plan->ttl_ms, plan->margin_ms,
                           (double)drift_ns(plan->ttl_ms, plan->drift_ppm) / 1e6, (double)usable_ns / 1e6);
}

aster_status aster_renew_plan_make(int64_t ttl_ms, int64_t renew_interval_ms, int64_t margin_ms, int64_t drift_ppm,
                                   const struct aster_limits *limits, struct aster_renew_plan *plan,
                                   struct aster_error *error)
{
    const struct aster_limits defaults = ASTER_LIMITS_INIT;
    aster_status status = aster_ttl_check(ttl_ms, limits != NULL ? limits : &defaults, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_renew_plan made = {ttl_ms, renew_interval_ms, margin_ms, drift_ppm};
    if (renew_interval_ms == ASTER_LEASE_DEFAULT) {
        made.renew_interval_ms = ttl_ms / 3;
    }
    if (margin_ms == ASTER_LEASE_DEFAULT) {
        made.margin_ms = ttl_ms / 10 < 1000 ? ttl_ms / 10 : 1000;
    }
    status = check_margin(&made, error);
    if (status == ASTER_OK) {
        status = check_interval(&made, error);
    }
    if (status == ASTER_OK) {
        *plan = made;
    }
    return status;
}

int64_t aster_renew_plan_limit_ns(const struct aster_renew_plan *plan, int64_t sent_ns)
{
    int64_t usable_ns = aster_ms_to_ns(plan->ttl_ms - plan->margin_ms) - drift_ns(plan->ttl_ms, plan->drift_ppm);
    return aster_add_saturated(sent_ns, usable_ns);
}
