/* From what a user knows (work, pause, recovery) to the times of a lease. Pure.
 *
 * A holder survives a gap of ttl - margin - drift since its last renewal, of which one renew interval may already be
 * gone when a pause begins: pause <= ttl - margin - drift - interval. A successor waits for the whole ttl after the
 * last renewal, and a polling waiter for its next look: recover >= ttl + slack. */
#include "aster/plan.h"

#include <inttypes.h>

#include "aster/lease.h"
#include "base/checked.h"
#include "base/error.h"

#define PAUSE_DEFAULT_MS 1000
#define TAKEOVER_SLACK_MS 250 /* a polling waiter's longest step (lease/acquire.c), and the grant itself */

static aster_status make_plan(int64_t ttl_ms, struct aster_renew_plan *plan, struct aster_error *error)
{
    return aster_renew_plan_make(ttl_ms, ASTER_LEASE_DEFAULT, ASTER_LEASE_DEFAULT, ASTER_LEASE_DRIFT_DEFAULT_PPM, NULL,
                                 plan, error);
}

static int64_t tolerated_pause_ms(const struct aster_renew_plan *plan)
{
    return aster_renew_plan_limit_ns(plan, 0) / ASTER_NS_PER_MS - plan->renew_interval_ms;
}

/* The shortest ttl that survives the pause; a longer ttl survives more. */
static aster_status shortest_ttl(int64_t pause_ms, int64_t *ttl_ms, struct aster_error *error)
{
    struct aster_renew_plan plan;
    int64_t low = ASTER_TTL_MIN_MS;
    int64_t high = ASTER_TTL_MAX_MS;
    aster_status status = make_plan(high, &plan, error);
    if (status == ASTER_OK && tolerated_pause_ms(&plan) < pause_ms) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "pause %" PRId64 " ms conflicts with ttl_max %d ms, which survives %" PRId64
                                 " ms at most: expect shorter pauses",
                                 pause_ms, ASTER_TTL_MAX_MS, tolerated_pause_ms(&plan));
    }
    while (status == ASTER_OK && low < high) {
        int64_t middle = low + (high - low) / 2;
        status = make_plan(middle, &plan, error);
        if (status == ASTER_OK && tolerated_pause_ms(&plan) >= pause_ms) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (status == ASTER_OK) {
        *ttl_ms = low;
    }
    return status;
}

static aster_status check_inputs(const struct aster_plan_inputs *inputs, struct aster_error *error)
{
    if (inputs->work_ms < 0 && inputs->pause_ms < 0 && inputs->recover_ms < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "nothing to plan with: give work, pause or recover");
    }
    if (inputs->recover_ms >= 0 && inputs->recover_ms < ASTER_TTL_MIN_MS + TAKEOVER_SLACK_MS) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "recover %" PRId64
                               " ms conflicts with ttl_min %d ms: no takeover can be promised within "
                               "less than %d ms",
                               inputs->recover_ms, ASTER_TTL_MIN_MS, ASTER_TTL_MIN_MS + TAKEOVER_SLACK_MS);
    }
    return ASTER_OK;
}

/* As long as the work, which needs no more; at least twice what the pause needs, if recovery allows. */
static int64_t choose_ttl(const struct aster_plan_inputs *inputs, int64_t least_ms, int64_t most_ms)
{
    int64_t wanted_ms = inputs->work_ms >= 0 ? inputs->work_ms : ASTER_LEASE_TTL_DEFAULT_MS;
    if (wanted_ms < 2 * least_ms) {
        wanted_ms = 2 * least_ms;
    }
    return wanted_ms < most_ms ? wanted_ms : most_ms;
}

aster_status aster_plan_derive(const struct aster_plan_inputs *inputs, struct aster_plan *plan,
                               struct aster_error *error)
{
    aster_status status = check_inputs(inputs, error);
    int64_t pause_ms = inputs->pause_ms >= 0 ? inputs->pause_ms : PAUSE_DEFAULT_MS;
    int64_t least_ms = 0;
    if (status == ASTER_OK) {
        status = shortest_ttl(pause_ms, &least_ms, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    int64_t most_ms = inputs->recover_ms >= 0 ? inputs->recover_ms - TAKEOVER_SLACK_MS : ASTER_TTL_MAX_MS;
    if (most_ms > ASTER_TTL_MAX_MS) {
        most_ms = ASTER_TTL_MAX_MS;
    }
    if (least_ms > most_ms) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "pause %" PRId64 " ms and recover %" PRId64
                               " ms conflict: surviving the pause needs a ttl "
                               "of %" PRId64 " ms, recovering in time allows %" PRId64 " ms: change one of the two",
                               pause_ms, inputs->recover_ms, least_ms, most_ms);
    }
    struct aster_plan made;
    status = make_plan(choose_ttl(inputs, least_ms, most_ms), &made.renew, error);
    if (status != ASTER_OK) {
        return status;
    }
    made.tolerated_pause_ms = tolerated_pause_ms(&made.renew);
    made.takeover_ms = made.renew.ttl_ms + TAKEOVER_SLACK_MS;
    *plan = made;
    return ASTER_OK;
}
