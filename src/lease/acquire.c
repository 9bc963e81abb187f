/* Acquiring: try, poll or stay queued, confirm a late grant, and release a grant that nobody wants any more. */
#include "base/checked.h"
#include "base/error.h"
#include "lease/handle.h"

#define POLL_FIRST_NS (5 * ASTER_NS_PER_MS)
#define POLL_LAST_NS (200 * ASTER_NS_PER_MS)
#define AFTER_EXPIRY_NS (2 * ASTER_NS_PER_MS) /* how long after the holder's ttl a poller looks again */
#define GIVE_BACK_NS (250 * ASTER_NS_PER_MS)  /* how long a serializer may take to give a request back */

static int64_t ttl_ns(const struct aster_lease *lease)
{
    return aster_ms_to_ns(lease->plan.ttl_ms);
}

static bool may_still_wait(const struct aster_lease *lease, int64_t now_ns)
{
    return !lease->abandoned && now_ns < lease->wait_until_ns;
}

/* A new id, unless an earlier attempt may have been applied: then only its own id can tell. */
void lease_acquire_begin(struct aster_lease *lease, struct outbox *outbox)
{
    struct aster_operation *operation = &lease->main.request.operation;
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    operation->kind = ASTER_OP_ACQUIRE;
    operation->flags = lease->acquire_flags;
    operation->ttl_ms = lease->plan.ttl_ms;
    operation->epoch = 0;
    if (!lease->ambiguous) {
        lease_runtime_random_id(lease->runtime, operation->request_id);
        lease->first_sent_ns = now_ns;
    }
    bool queues = (aster_serializer_traits_of(lease->serializer) & ASTER_SERIALIZER_QUEUES_WAITERS) != 0;
    bool waits = queues && may_still_wait(lease, now_ns);
    lease->phase = PHASE_ACQUIRE;
    lease->main.request.wait_until_ns = waits ? lease->wait_until_ns : 0;
    int64_t deadline_ns = aster_add_saturated(waits ? lease->wait_until_ns : now_ns, lease->timeout_ns);
    lease->lapse_ns = aster_add_saturated(deadline_ns, ttl_ns(lease));
    lease_request_send(lease, &lease->main, deadline_ns, outbox);
    lease_timer_set(lease, deadline_ns);
}

static void not_granted(struct aster_lease *lease, aster_status outcome)
{
    if (lease->status == ASTER_LEASE_ACQUIRING) {
        lease->outcome = outcome;
    }
    lease_end(lease, ASTER_LEASE_NOT_GRANTED, ASTER_LEASE_REASON_NONE);
}

void lease_acquire_abandon(struct aster_lease *lease, aster_status outcome, struct outbox *outbox)
{
    if (lease->abandoned) {
        return;
    }
    lease->abandoned = true;
    lease->outcome = outcome;
    lease_set_status(lease, ASTER_LEASE_NOT_GRANTED, ASTER_LEASE_REASON_NONE);
    lease_request_give_back(&lease->main, outbox);
    if (lease->phase == PHASE_CONFIRM) {
        lease_release_begin(lease, outbox);
    } else if (lease->main.in_flight) {
        lease_timer_set(lease, NEVER); /* its answer decides whether there is a grant to release */
    } else if (!lease->ambiguous) {
        lease_end(lease, ASTER_LEASE_NOT_GRANTED, ASTER_LEASE_REASON_NONE);
    } /* else its repetition is on the timer, to learn of a grant and release it */
}

static void granted(struct aster_lease *lease, const struct aster_decision *decision, struct outbox *outbox)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    lease->ambiguous = false;
    lease->fence.epoch = decision->epoch;
    lease->lapse_ns = aster_add_saturated(now_ns, ttl_ns(lease));
    if (aster_reply_set(&lease->grant, decision) != ASTER_OK && !lease->abandoned) {
        aster_error_set(&lease->last_error, ASTER_ERR_NOMEM, "out of memory for the grant: it is released again");
        lease_acquire_abandon(lease, ASTER_ERR_NOMEM, outbox);
    }
    if (lease->abandoned) {
        lease_release_begin(lease, outbox);
    } else if (now_ns - lease->first_sent_ns <= aster_ms_to_ns(lease->plan.renew_interval_ms)) {
        lease_hold_begin(lease, lease->first_sent_ns);
    } else {
        /* When the serializer granted it cannot be told from here; only a request sent from now on has a limit. */
        lease->phase = PHASE_CONFIRM;
        lease->retry_ns = 0;
        lease_renew_send(lease, now_ns, outbox);
    }
}

static void denied(struct aster_lease *lease, const struct aster_decision *decision)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    lease->ambiguous = false;
    if (aster_reply_set(&lease->grant, decision) != ASTER_OK) {
        aster_error_set(&lease->last_error, ASTER_ERR_NOMEM, "out of memory for the denial");
        not_granted(lease, ASTER_ERR_NOMEM);
        return;
    }
    bool wait = decision->reason == ASTER_REASON_HELD_BY_OTHER || decision->reason == ASTER_REASON_EXPIRED ||
                decision->kind == ASTER_OP_RENEW;
    if (!wait || !may_still_wait(lease, now_ns)) {
        not_granted(lease, ASTER_OK);
        return;
    }
    int64_t delay_ns = lease_next_retry(lease, POLL_FIRST_NS, POLL_LAST_NS);
    int64_t expiry_ns = decision->snapshot.remaining_ns + lease_runtime_jitter(lease->runtime, AFTER_EXPIRY_NS);
    if (decision->snapshot.held && expiry_ns < delay_ns) {
        delay_ns = expiry_ns;
    }
    lease->phase = PHASE_ACQUIRE;
    lease_timer_set(lease, now_ns + delay_ns < lease->wait_until_ns ? now_ns + delay_ns : lease->wait_until_ns);
}

/* An acquire that failed. Once an attempt may have been applied, every repetition has its id until a decision comes:
 * under another id the candidate would be denied by its own grant. */
static void acquire_failed(struct aster_lease *lease, aster_status status, const struct aster_error *error)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    bool transient = lease_status_is_transient(status);
    lease->ambiguous = lease->ambiguous || status == ASTER_ERR_INDETERMINATE;
    if (status == ASTER_ERR_CANCELLED) {
        status = ASTER_ERR_TIMEOUT; /* given back at its deadline */
    }
    bool retry = lease->ambiguous && now_ns < lease->lapse_ns;
    if (!lease->abandoned) {
        lease_note_error(lease, status, error);
        bool may_ask = lease->ambiguous && now_ns < aster_add_saturated(lease->first_sent_ns, lease->timeout_ns);
        if (!may_ask && !may_still_wait(lease, now_ns)) {
            lease->abandoned = true;
            lease->outcome = lease->ambiguous ? ASTER_ERR_INDETERMINATE : status;
        }
        retry = retry || !lease->abandoned;
    }
    if (!transient || !retry) {
        not_granted(lease, lease->abandoned ? lease->outcome : status);
        return;
    }
    if (lease->abandoned) { /* go on behind the scenes until it is known, or has lapsed */
        lease_set_status(lease, ASTER_LEASE_NOT_GRANTED, ASTER_LEASE_REASON_NONE);
    }
    lease_timer_set(lease, now_ns + lease_next_retry(lease, POLL_FIRST_NS, POLL_LAST_NS));
}

static void confirm_failed(struct aster_lease *lease, aster_status status, const struct aster_error *error,
                           struct outbox *outbox)
{
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    lease->renew_errors++;
    lease_note_error(lease, status, error);
    if (lease->abandoned) {
        lease_release_begin(lease, outbox);
    } else if (status == ASTER_ERR_CLOSED || now_ns >= lease->lapse_ns) {
        not_granted(lease, status);
    } else {
        lease_timer_set(lease, now_ns + lease_next_retry(lease, POLL_FIRST_NS, POLL_LAST_NS));
    }
}

static void confirm_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                           const struct aster_error *error, struct outbox *outbox)
{
    if (status != ASTER_OK) {
        confirm_failed(lease, status, error, outbox);
    } else if (decision->outcome == ASTER_DENIED) {
        denied(lease, decision); /* the queue's grant is gone already: wait again, or say so */
    } else if (lease->abandoned) {
        lease_release_begin(lease, outbox);
    } else if (aster_clock_now_ns(lease->clock) < aster_renew_plan_limit_ns(&lease->plan, lease->main.sent_ns)) {
        lease_hold_begin(lease, lease->main.sent_ns);
    } else {
        lease_renew_send(lease, aster_clock_now_ns(lease->clock), outbox);
    }
}

void lease_acquire_answer(struct aster_lease *lease, aster_status status, const struct aster_decision *decision,
                          const struct aster_error *error, struct outbox *outbox)
{
    if (lease->phase == PHASE_CONFIRM) {
        confirm_answer(lease, status, decision, error, outbox);
    } else if (status != ASTER_OK) {
        acquire_failed(lease, status, error);
    } else if (decision->outcome == ASTER_GRANTED) {
        granted(lease, decision, outbox);
    } else {
        denied(lease, decision);
    }
}

void lease_acquire_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox)
{
    if (lease->main.in_flight && !lease->main.given_back) {
        lease_request_give_back(&lease->main, outbox);
        lease_timer_set(lease, now_ns + GIVE_BACK_NS);
    } else if (lease->main.in_flight) {
        lease_timer_set(lease, NEVER);
        aster_error_set(&lease->last_error, ASTER_ERR_INDETERMINATE,
                        "the acquire was not answered within %lld ms; a grant that comes later is released",
                        (long long)(lease->timeout_ns / ASTER_NS_PER_MS));
        lease_acquire_abandon(lease, ASTER_ERR_INDETERMINATE, outbox);
    } else if (lease->phase == PHASE_CONFIRM && now_ns < lease->lapse_ns) {
        lease_renew_send(lease, now_ns, outbox);
    } else if (lease->phase == PHASE_CONFIRM || (lease->abandoned && now_ns >= lease->lapse_ns)) {
        not_granted(lease, ASTER_ERR_TIMEOUT);
    } else {
        int64_t lapse_ns = lease->lapse_ns;
        lease_acquire_begin(lease, outbox);
        if (lease->abandoned) {
            lease->lapse_ns = lapse_ns; /* asking again must not prolong the asking */
        }
    }
}
