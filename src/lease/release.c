/* Releasing: one request id, repeated until the answer is definitive or the lease would have lapsed by itself. */
#include "base/checked.h"
#include "base/error.h"
#include "lease/handle.h"

#define RETRY_FIRST_NS (10 * ASTER_NS_PER_MS)
#define RETRY_LAST_NS (1000 * ASTER_NS_PER_MS)

static void send_release(struct aster_lease *lease, struct outbox *outbox)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    int64_t deadline_ns = aster_add_saturated(now_ns, aster_ms_to_ns(lease->plan.renew_interval_ms));
    lease_request_send(lease, &lease->release, deadline_ns, outbox);
    lease_timer_set(lease, deadline_ns < lease->lapse_ns ? deadline_ns : lease->lapse_ns);
}

void lease_release_begin(struct aster_lease *lease, struct outbox *outbox)
{
    struct aster_operation *operation = &lease->release.request.operation;
    lease->phase = PHASE_RELEASE;
    if (lease->status == ASTER_LEASE_HELD) {
        lease_set_status(lease, ASTER_LEASE_RELEASE_PENDING, ASTER_LEASE_REASON_NONE);
    }
    lease_supply(lease);
    lease_request_give_back(&lease->main, outbox);
    operation->kind = ASTER_OP_RELEASE;
    operation->epoch = lease->fence.epoch;
    lease_runtime_random_id(lease->runtime, operation->request_id);
    lease->release_answered = false;
    lease->retry_ns = 0;
    /* A renewal that is still in flight may be applied first. */
    lease->lapse_ns = aster_add_saturated(aster_clock_now_ns(lease->clock), aster_ms_to_ns(lease->plan.ttl_ms));
    send_release(lease, outbox);
}

/* A handle that was LOST, or that never held, keeps its status: the release was a courtesy to the next one. */
static void finish(struct aster_lease *lease, aster_status outcome, enum aster_lease_status status,
                   enum aster_lease_reason reason)
{
    if (lease->status != ASTER_LEASE_RELEASE_PENDING) {
        status = lease->status;
        reason = lease->reason;
    }
    if (status != ASTER_LEASE_NOT_GRANTED) {
        lease->outcome = outcome;
    }
    lease->release_answered = true;
    lease_end(lease, status, reason);
    pthread_cond_broadcast(&lease->changed);
}

void lease_release_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox)
{
    if (now_ns >= lease->lapse_ns) {
        lease_request_give_back(&lease->release, outbox);
        finish(lease, ASTER_ERR_TIMEOUT, ASTER_LEASE_LOST, ASTER_LEASE_REASON_UNREACHABLE);
    } else if (!lease->release.in_flight) {
        send_release(lease, outbox);
    } else {
        lease_request_give_back(&lease->release, outbox);
        lease_timer_set(lease, lease->lapse_ns);
    }
}

void lease_release_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                          const struct aster_error *error)
{
    if (status == ASTER_OK) {
        bool released = decision->outcome == ASTER_GRANTED;
        if (aster_reply_set(&lease->release_reply, decision) != ASTER_OK) {
            aster_error_set(&lease->last_error, ASTER_ERR_NOMEM, "out of memory for the release's decision");
        }
        finish(lease, ASTER_OK, released ? ASTER_LEASE_RELEASED : ASTER_LEASE_FENCED,
               released ? ASTER_LEASE_REASON_NONE : lease_denial_reason(lease, decision));
        return;
    }
    if (!(lease->release.given_back && status == ASTER_ERR_CANCELLED)) { /* its own doing says nothing of the store */
        lease_note_error(lease, status, error);
    }
    if (status == ASTER_ERR_CLOSED || status == ASTER_ERR_INVALID || status == ASTER_ERR_REENTRANT) {
        finish(lease, status, ASTER_LEASE_LOST,
               status == ASTER_ERR_CLOSED ? ASTER_LEASE_REASON_CLOSED : ASTER_LEASE_REASON_UNREACHABLE);
        return;
    }
    int64_t next_ns = aster_clock_now_ns(lease->clock) + lease_next_retry(lease, RETRY_FIRST_NS, RETRY_LAST_NS);
    lease_timer_set(lease, next_ns < lease->lapse_ns ? next_ns : lease->lapse_ns);
}
