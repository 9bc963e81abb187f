/* Expiry, takeover, restart, deadlines: on the serializer's own clock. */
#include <pthread.h>

#include "kit.h"

static void a_paused_holder_is_fenced_after_the_takeover(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms);
    /* Nobody else was granted yet: it may be written, and a back end may be stricter. */
    enum aster_reason late = put(s, "r", "a", 1, 0, "late");
    EXPECT(late == ASTER_REASON_NONE || late == ASTER_REASON_EXPIRED);
    int64_t revision = late == ASTER_REASON_NONE ? 1 : 0;
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 2 && s->reply.decision.takeover);
    EXPECT(is_text(s->reply.decision.snapshot.last_holder, "a") && s->reply.decision.snapshot.last_epoch_held == 1);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(renew(s, "r", "a", 2) == ASTER_REASON_NOT_HOLDER);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(put(s, "r", "a", 1, revision, "stale") == ASTER_REASON_STALE_EPOCH);
    EXPECT(put(s, "r", "a", 2, revision, "stale") == ASTER_REASON_NOT_HOLDER);
    EXPECT(put(s, "r", "b", 2, revision, "fresh") == ASTER_REASON_NONE);
}

static void an_expired_holder_cannot_renew_but_may_release(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms);
    EXPECT(renew(s, "r", "b", 1) == ASTER_REASON_NOT_HOLDER);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_EXPIRED);
    EXPECT(s->reply.decision.snapshot.remaining_ns == 0);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
}

static void renew_and_takeover_meet_at_the_boundary_and_never_both_win(struct scenario *s)
{
    SKIP_IF(s->subject->real_time, "needs a virtual clock");
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    aster_conformance_clock_advance(&s->clock, s->ttl_ms * 1000000 - 1);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_HELD_BY_OTHER && s->reply.decision.snapshot.remaining_ns == 1);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    EXPECT(s->reply.decision.snapshot.remaining_ns == s->ttl_ms * 1000000);
    aster_conformance_clock_advance(&s->clock, s->ttl_ms * 1000000);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_EXPIRED);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
}

static void renewals_keep_it_alive_for_ten_ttl(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    for (int i = 1; i <= 30; i++) {
        pass_time(s, s->ttl_ms / 3);
        EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE);
        EXPECT(s->reply.decision.epoch == 1 && s->reply.decision.snapshot.lease_revision == i);
        EXPECT(acquire(s, "r", "b") == ASTER_REASON_HELD_BY_OTHER);
    }
}

static void a_put_renews_nothing(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms / 2);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms / 2);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
}

static void restart_re_arms_and_does_not_advance_the_epoch(struct scenario *s)
{
    SKIP_IF(s->subject->restart == NULL, "the subject has no restart");
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(put(s, "r", "a", 1, 0, "kept") == ASTER_REASON_NONE);
    EXPECT(acquire(s, "freed", "a") == ASTER_REASON_NONE);
    EXPECT(release(s, "freed", "a", 1) == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms * 3 / 4);
    s->status = s->subject->restart(s->subject->user, &s->serializer, &s->error);
    EXPECT(s->status == ASTER_OK);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->held && row->epoch == 1 && is_text(row->holder, "a") && is_text(row->value, "kept"));
    pass_time(s, s->ttl_ms * 3 / 4);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_HELD_BY_OTHER);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    pass_time(s, s->ttl_ms);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    row = look(s, "freed");
    EXPECT(row != NULL && !row->held && row->epoch == 2);
}

static void a_ttl_out_of_range_is_invalid_and_names_the_bound(struct scenario *s)
{
    const int64_t bad[] = {0, -1, INT64_MIN, ASTER_TTL_HARD_MAX_MS + 1, INT64_C(86400000000000), INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_operation operation = op(ASTER_OP_ACQUIRE, "r", "a", 0);
        operation.ttl_ms = bad[i];
        EXPECT(decide(s, &operation) == FAILED && s->status == ASTER_ERR_INVALID);
        EXPECT(strstr(s->error.message, "ttl") != NULL);
    }
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->epoch == 0);
}

/* A request whose answer is waited for. */
struct pending {
    struct aster_request request;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    int answers;
    aster_status status;
    enum aster_outcome outcome;
    int64_t epoch;
};

static void answer(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                   const struct aster_error *error)
{
    (void)error;
    struct pending *pending = request->user;
    pthread_mutex_lock(&pending->mutex);
    pending->answers++;
    pending->status = status;
    if (decision != NULL) {
        pending->outcome = decision->outcome;
        pending->epoch = decision->epoch;
    }
    pthread_cond_signal(&pending->done);
    pthread_mutex_unlock(&pending->mutex);
}

static void pending_init(struct pending *pending, struct aster_operation operation)
{
    memset(pending, 0, sizeof *pending);
    pending->request = (struct aster_request)ASTER_REQUEST_INIT;
    pending->request.operation = operation;
    pending->request.complete = answer;
    pending->request.user = pending;
    pthread_mutex_init(&pending->mutex, NULL);
    pthread_cond_init(&pending->done, NULL);
}

static void pending_wait(struct pending *pending)
{
    pthread_mutex_lock(&pending->mutex);
    while (pending->answers == 0) {
        pthread_cond_wait(&pending->done, &pending->mutex);
    }
    pthread_mutex_unlock(&pending->mutex);
}

static int pending_fini(struct pending *pending)
{
    pthread_mutex_lock(&pending->mutex);
    int answers = pending->answers;
    pthread_mutex_unlock(&pending->mutex);
    pthread_mutex_destroy(&pending->mutex);
    pthread_cond_destroy(&pending->done);
    return answers;
}

static void an_operation_past_its_deadline_is_answered_timeout_and_never_applied(struct scenario *s)
{
    struct pending pending;
    pending_init(&pending, op(ASTER_OP_ACQUIRE, "r", "a", 0));
    pending.request.operation.ttl_ms = s->ttl_ms;
    pending.request.deadline_ns = 1;
    aster_serializer_submit(s->serializer, &pending.request);
    pending_wait(&pending);
    EXPECT(pending_fini(&pending) == 1 && pending.status == ASTER_ERR_TIMEOUT);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && !row->held && row->epoch == 0);
}

static void a_waiter_is_granted_when_the_holder_releases(struct scenario *s)
{
    SKIP_IF((aster_serializer_traits_of(s->serializer) & ASTER_SERIALIZER_QUEUES_WAITERS) == 0,
            "the serializer queues no waiters");
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    struct pending pending;
    pending_init(&pending, op(ASTER_OP_ACQUIRE, "r", "b", 0));
    pending.request.operation.ttl_ms = s->ttl_ms;
    pending.request.wait_until_ns = aster_clock_now_ns(aster_serializer_clock(s->serializer)) + INT64_C(60000000000);
    aster_serializer_submit(s->serializer, &pending.request);
    enum aster_reason reason = release(s, "r", "a", 1);
    pending_wait(&pending);
    EXPECT(pending_fini(&pending) == 1 && reason == ASTER_REASON_NONE);
    EXPECT(pending.status == ASTER_OK && pending.outcome == ASTER_GRANTED && pending.epoch == 3);
}

static void after_close_requests_are_answered_closed(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    aster_serializer_close(s->serializer);
    aster_serializer_close(s->serializer);
    EXPECT(renew(s, "r", "a", 1) == FAILED && s->status == ASTER_ERR_CLOSED);
}

const struct scenario_entry aster_conformance_time[] = {
    {"a paused holder is fenced after the takeover", a_paused_holder_is_fenced_after_the_takeover},
    {"an expired holder cannot renew but may release", an_expired_holder_cannot_renew_but_may_release},
    {"renew and takeover meet at the boundary and never both win",
     renew_and_takeover_meet_at_the_boundary_and_never_both_win},
    {"renewals keep it alive for ten ttl", renewals_keep_it_alive_for_ten_ttl},
    {"a put renews nothing", a_put_renews_nothing},
    {"restart re-arms and does not advance the epoch", restart_re_arms_and_does_not_advance_the_epoch},
    {"a ttl out of range is invalid and names the bound", a_ttl_out_of_range_is_invalid_and_names_the_bound},
    {"an operation past its deadline is answered TIMEOUT and never applied",
     an_operation_past_its_deadline_is_answered_timeout_and_never_applied},
    {"a waiter is granted when the holder releases", a_waiter_is_granted_when_the_holder_releases},
    {"after close requests are answered CLOSED", after_close_requests_are_answered_closed},
    {NULL, NULL},
};
