#include "grantor/batch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "grantor/flight.h"
#include "grantor/peers.h"
#include "grantor/session.h"

/* What the denials of one reply may take up; the frame also holds what surrounds them. */
#define ROOM (ASTER_FRAME_PAYLOAD_MAX - 32768)
#define DENIAL_SIZE 112 /* numbers and tags of one denial */

/* What a result that is no grant refers to. */
struct refusal {
    struct aster_reply reply;
    char *message;
};

struct renewal {
    struct aster_request request; /* first */
    struct grantor_batch *batch;
    struct refusal *refusal; /* NULL when it was granted */
};

struct grantor_batch {
    struct aster_task task; /* brings the last answer back to the loop */
    struct grantor_state *state;
    struct grantor_session *session; /* NULL once the link is gone */
    struct grantor_peer *peer;       /* whose it is, for the counts, also then */
    struct grantor_batch *previous;  /* in the session's list */
    struct grantor_batch *next;
    uint64_t id;
    size_t size; /* of this structure with its bytes */
    size_t count;
    atomic_size_t open; /* any thread */
    struct aster_renewed *results;
    struct renewal renewals[];
};

static void destroy(struct grantor_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct refusal *refusal = batch->renewals[i].refusal;
        if (refusal != NULL) {
            aster_reply_fini(&refusal->reply);
            free(refusal->message);
            free(refusal);
        }
    }
    free(batch);
}

static void fail(struct aster_renewed *result, aster_status status, const char *message)
{
    result->status = status;
    result->message = aster_text(message);
}

/* Denials and messages beyond what fits one frame become "no room": their clients ask again. */
static void limit_size(const struct grantor_batch *batch)
{
    size_t used = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct aster_renewed *result = &batch->results[i];
        const struct aster_snapshot *snapshot = &result->decision.snapshot;
        if (batch->renewals[i].refusal == NULL) {
            continue;
        }
        size_t size = result->status != ASTER_OK ? result->message.size
                                                 : snapshot->resource.size + snapshot->holder.size + DENIAL_SIZE;
        if (used + size > ROOM) {
            fail(result, ASTER_ERR_BUSY, "no room for it");
        } else {
            used += size;
        }
    }
}

static void unlink_from_session(struct grantor_batch *batch)
{
    struct grantor_session *session = batch->session;
    *(batch->previous != NULL ? &batch->previous->next : &session->batches) = batch->next;
    if (batch->next != NULL) {
        batch->next->previous = batch->previous;
    }
    batch->session = NULL;
}

static void count_up(const struct grantor_batch *batch)
{
    batch->state->flights += batch->count;
    batch->state->flight_bytes += batch->size;
    batch->peer->in_flight += batch->count;
    batch->peer->bytes += batch->size;
}

static void count_down(const struct grantor_batch *batch)
{
    batch->state->flights -= batch->count;
    batch->state->flight_bytes -= batch->size;
    batch->peer->in_flight -= batch->count;
    batch->peer->bytes -= batch->size;
    grantor_peers_settle(batch->state->peers, batch->peer);
}

static void finish(struct grantor_batch *batch)
{
    struct grantor_session *session = batch->session;
    if (session != NULL) {
        struct aster_answer answer = {.id = batch->id, .kind = ASTER_ANSWER_RENEWED_MANY};
        limit_size(batch);
        answer.renewed.results = batch->results;
        answer.renewed.count = batch->count;
        unlink_from_session(batch);
        grantor_session_send(session, &answer);
    }
    count_down(batch);
    destroy(batch);
}

static void run_finish(struct aster_task *task)
{
    finish((struct grantor_batch *)(void *)task);
}

/* A denial carries no value and nothing of the past: a thousand of them must fit into one frame. */
static void deny(struct renewal *renewal, struct aster_renewed *result, const struct aster_decision *decision)
{
    struct aster_decision shown = *decision;
    shown.snapshot.value = (struct aster_bytes){NULL, 0};
    shown.snapshot.last_holder = (struct aster_bytes){NULL, 0};
    shown.snapshot.last_epoch_held = 0;
    grantor_hide_unauthorized(&shown);
    renewal->refusal = calloc(1, sizeof *renewal->refusal);
    if (renewal->refusal == NULL || aster_reply_set(&renewal->refusal->reply, &shown) != ASTER_OK) {
        fail(result, ASTER_ERR_NOMEM, "no memory");
        return;
    }
    result->status = ASTER_OK;
    result->decision = renewal->refusal->reply.decision;
}

static void grant(struct aster_renewed *result, const struct aster_decision *decision)
{
    result->status = ASTER_OK;
    result->decision.struct_size = sizeof result->decision;
    result->decision.kind = decision->kind;
    result->decision.outcome = decision->outcome;
    result->decision.epoch = decision->epoch;
    result->decision.snapshot.epoch = decision->snapshot.epoch;
    result->decision.snapshot.lease_revision = decision->snapshot.lease_revision;
    result->decision.snapshot.remaining_ns = decision->snapshot.remaining_ns;
}

static void note_failure(struct renewal *renewal, struct aster_renewed *result, aster_status status,
                         const char *message)
{
    renewal->refusal = message != NULL ? calloc(1, sizeof *renewal->refusal) : NULL;
    char *kept = renewal->refusal != NULL ? strdup(message) : NULL;
    if (kept != NULL) {
        renewal->refusal->message = kept;
    }
    fail(result, status, kept != NULL ? kept : "failed");
}

/* On any thread; each renewal is answered once, and whoever answers the last one ends the batch. */
static void answer(struct renewal *renewal, aster_status status, const struct aster_decision *decision,
                   const char *message)
{
    struct grantor_batch *batch = renewal->batch;
    struct grantor_state *state = batch->state;
    struct aster_renewed *result = &batch->results[renewal - batch->renewals];
    grantor_count_decision(&state->counters, ASTER_OP_RENEW, status, decision);
    if (status != ASTER_OK) {
        note_failure(renewal, result, status, message);
    } else if (decision->outcome == ASTER_GRANTED) {
        grant(result, decision);
    } else {
        deny(renewal, result, decision);
    }
    if (atomic_fetch_sub_explicit(&batch->open, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (aster_loop_is_current(state->loop)) {
        finish(batch);
    } else {
        aster_loop_post(state->loop, &batch->task);
    }
}

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    answer((struct renewal *)request, status, decision, error != NULL ? error->message : NULL);
}

static struct grantor_batch *create(struct grantor_session *session, const struct aster_call *call)
{
    size_t count = call->many.count;
    size_t bytes = aster_link_identity(session->link).size;
    for (size_t i = 0; i < count; i++) {
        bytes += call->many.operations[i].resource.size;
    }
    struct grantor_batch *batch = NULL;
    size_t size = sizeof *batch + count * (sizeof batch->renewals[0] + sizeof batch->results[0]) + bytes;
    batch = malloc(size);
    if (batch == NULL) {
        return NULL;
    }
    *batch = (struct grantor_batch){.task = {NULL, run_finish},
                                    .state = session->state,
                                    .session = session,
                                    .peer = session->peer,
                                    .next = session->batches,
                                    .id = call->id,
                                    .size = size,
                                    .count = count};
    atomic_init(&batch->open, count);
    batch->results = (struct aster_renewed *)(void *)&batch->renewals[count];
    memset(batch->results, 0, count * sizeof batch->results[0]);
    return batch;
}

static char *copy(struct aster_bytes *bytes, char *to)
{
    memcpy(to, bytes->data, bytes->size);
    bytes->data = to;
    return to + bytes->size;
}

static void fill(struct grantor_batch *batch, const struct aster_call *call)
{
    const struct grantor_state *state = batch->state;
    int64_t now_ns = aster_clock_now_ns(aster_serializer_clock(state->serializer));
    int64_t bound_ms = call->deadline_ms > 0 ? call->deadline_ms : GRANTOR_DEADLINE_DEFAULT_MS;
    int64_t deadline_ns = aster_add_saturated(now_ns, aster_ms_to_ns(bound_ms));
    struct aster_bytes caller = aster_link_identity(batch->session->link);
    char *to = copy(&caller, (char *)&batch->results[batch->count]);
    for (size_t i = 0; i < batch->count; i++) {
        struct renewal *renewal = &batch->renewals[i];
        renewal->batch = batch;
        renewal->refusal = NULL;
        renewal->request = (struct aster_request)ASTER_REQUEST_INIT;
        renewal->request.operation = call->many.operations[i];
        renewal->request.operation.caller = caller;
        to = copy(&renewal->request.operation.resource, to);
        renewal->request.deadline_ns = deadline_ns;
        renewal->request.complete = complete;
    }
}

/* A renewal that must not go to the serializer is answered here. */
static bool is_refused(struct renewal *renewal)
{
    struct grantor_session *session = renewal->batch->session;
    struct aster_decision denied;
    if (session == NULL || !grantor_session_refuses(session, &renewal->request.operation, &denied)) {
        return false;
    }
    answer(renewal, ASTER_OK, &denied, NULL);
    return true;
}

static void submit(struct grantor_batch *batch)
{
    struct aster_request *requests[ASTER_WIRE_RENEW_MANY_MAX];
    struct aster_serializer *serializer = batch->state->serializer;
    const size_t total = batch->count; /* refusing all of them ends the batch */
    bool is_free =
        grantor_admission_is_free(batch->state->admission, batch->renewals[0].request.operation.caller, ASTER_OP_RENEW);
    size_t count = 0;
    for (size_t i = 0; i < total; i++) {
        struct renewal *renewal = &batch->renewals[i];
        if (is_free || !is_refused(renewal)) {
            requests[count++] = &renewal->request;
        }
    }
    if (count > 0) {
        aster_serializer_submit_many(serializer, requests, count);
    }
}

void grantor_batch_start(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_batch *batch = create(session, call);
    if (batch == NULL) {
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no memory for the renewals");
        return;
    }
    fill(batch, call);
    if (batch->next != NULL) {
        batch->next->previous = batch;
    }
    session->batches = batch;
    count_up(batch);
    submit(batch);
}

void grantor_batches_abandon(struct grantor_session *session)
{
    while (session->batches != NULL) {
        unlink_from_session(session->batches);
    }
}
