/* Holding: renew at every interval, retry quickly, stop at the limit. */
#include "base/checked.h"
#include "base/error.h"
#include "lease/handle.h"

#define RETRY_FIRST_MAX_NS (250 * ASTER_NS_PER_MS)
#define RETRY_LEAST_NS (20 * ASTER_NS_PER_MS)

static int64_t interval_ns(const struct aster_lease *lease)
{
    return aster_ms_to_ns(lease->plan.renew_interval_ms);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void hold_until(struct aster_lease *lease, int64_t sent_ns)
{
    lease->limit_ns = aster_renew_plan_limit_ns(&lease->plan, sent_ns);
    lease->lapse_ns = aster_add_saturated(aster_clock_now_ns(lease->clock), aster_ms_to_ns(lease->plan.ttl_ms));
    lease->attempts = 0;
    lease->retry_ns = 0;
    lease_timer_set(lease, earlier(aster_add_saturated(sent_ns, interval_ns(lease)), lease->limit_ns));
}

void lease_hold_begin(struct aster_lease *lease, int64_t sent_ns)
{
    lease->phase = PHASE_HOLD;
    lease->outcome = ASTER_OK;
    hold_until(lease, sent_ns);
    lease_set_status(lease, ASTER_LEASE_HELD, ASTER_LEASE_REASON_NONE);
    lease_supply(lease);
}

void lease_renew_send(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox)
{
    struct aster_operation *operation = &lease->main.request.operation;
    operation->kind = ASTER_OP_RENEW;
    operation->flags = 0;
    operation->ttl_ms = 0;
    operation->epoch = lease->fence.epoch;
    lease->main.request.wait_until_ns = 0;
    /* A fresh id for every attempt: renewing twice is harmless, and each success then counts from its own sending. */
    lease_runtime_random_id(lease->runtime, operation->request_id);
    int64_t end_ns = lease->phase == PHASE_CONFIRM ? lease->lapse_ns : lease->limit_ns;
    int64_t deadline_ns = earlier(aster_add_saturated(now_ns, interval_ns(lease)), end_ns);
    lease->attempts++;
    lease_request_send(lease, &lease->main, deadline_ns, outbox);
    lease_timer_set(lease, deadline_ns);
}

static void lose(struct aster_lease *lease)
{
    /* Without a single attempt since the last success the process did not get to run: suspend, SIGSTOP, starvation. */
    lease_end(lease, ASTER_LEASE_LOST,
              lease->attempts > 0 ? ASTER_LEASE_REASON_UNREACHABLE : ASTER_LEASE_REASON_CLOCK_JUMP);
}

void lease_renew_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox)
{
    if (now_ns >= lease->limit_ns) {
        lease_request_give_back(&lease->main, outbox);
        lose(lease);
    } else if (!lease->main.in_flight) {
        lease_renew_send(lease, now_ns, outbox);
    } else if (now_ns >= lease->main.deadline_ns) {
        lease->renew_errors++;
        aster_error_set(&lease->last_error, ASTER_ERR_TIMEOUT, "a renewal was not answered within %lld ms",
                        (long long)lease->plan.renew_interval_ms);
        lease_request_give_back(&lease->main, outbox);
        lease_timer_set(lease, lease->limit_ns);
    }
}

enum aster_lease_reason lease_denial_reason(const struct aster_lease *lease, const struct aster_decision *decision)
{
    if (decision->reason == ASTER_REASON_EXPIRED) {
        return ASTER_LEASE_REASON_EXPIRED;
    }
    bool freed = !decision->snapshot.held && decision->snapshot.last_epoch_held == lease->fence.epoch;
    return freed ? ASTER_LEASE_REASON_REVOKED : ASTER_LEASE_REASON_DENIED;
}

static void renew_failed(struct aster_lease *lease, aster_status status, const struct aster_error *error,
                         int64_t now_ns)
{
    if (!(lease->main.given_back && status == ASTER_ERR_CANCELLED)) { /* that one was counted at its deadline */
        lease->renew_errors++;
        lease_note_error(lease, status, error);
    }
    if (status == ASTER_ERR_CLOSED) {
        lease_end(lease, ASTER_LEASE_LOST, ASTER_LEASE_REASON_CLOSED); /* no attempt can succeed any more */
        return;
    }
    int64_t first_ns = earlier(interval_ns(lease) / 10, RETRY_FIRST_MAX_NS);
    int64_t delay_ns = lease_next_retry(lease, first_ns, interval_ns(lease) / 2);
    /* Closer together again as the limit comes near: a store that recovers just in time must be noticed in time. */
    int64_t quarter_ns = (lease->limit_ns - now_ns) / 4;
    delay_ns = earlier(delay_ns, quarter_ns > RETRY_LEAST_NS ? quarter_ns : RETRY_LEAST_NS);
    lease_timer_set(lease, earlier(now_ns + delay_ns, lease->limit_ns));
}

void lease_renew_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                        const struct aster_error *error)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    if (status == ASTER_OK && decision->outcome == ASTER_DENIED) {
        lease_end(lease, ASTER_LEASE_FENCED, lease_denial_reason(lease, decision));
    } else if (now_ns >= lease->limit_ns) {
        lose(lease); /* a success that comes too late does not bring the fence back */
    } else if (status != ASTER_OK) {
        renew_failed(lease, status, error, now_ns);
    } else {
        lease->renewals++;
        hold_until(lease, lease->main.sent_ns);
        lease_supply(lease);
    }
}
