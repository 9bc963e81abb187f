#include "grantor/batch.h"

#include <stdlib.h>

#include "grantor/flight.h"
#include "grantor/session.h"

/* What the denials of one reply may take up; the frame also holds what surrounds them. */
#define ROOM (ASTER_FRAME_PAYLOAD_MAX - 32768)
#define DENIAL_SIZE 112 /* numbers and tags of one denial */

struct grantor_batch {
    struct grantor_session *session; /* NULL once the link is gone */
    uint64_t id;
    size_t count;
    size_t open;
    size_t used;
    struct {
        struct aster_reply reply;
        char *message;
    } * kept; /* what the results refer to */
    struct aster_renewed results[];
};

static void destroy(struct grantor_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        aster_reply_fini(&batch->kept[i].reply);
        free(batch->kept[i].message);
    }
    free(batch->kept);
    free(batch);
}

static struct grantor_batch *create(struct grantor_session *session, uint64_t id, size_t count)
{
    struct grantor_batch *batch = calloc(1, sizeof *batch + count * sizeof batch->results[0]);
    if (batch == NULL) {
        return NULL;
    }
    batch->kept = calloc(count, sizeof batch->kept[0]);
    if (batch->kept == NULL) {
        free(batch);
        return NULL;
    }
    batch->session = session;
    batch->id = id;
    batch->count = count;
    batch->open = count;
    return batch;
}

void grantor_batch_start(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_batch *batch = create(session, call->id, call->many.count);
    if (batch == NULL) {
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no memory for the renewals");
        return;
    }
    for (size_t i = 0; i < call->many.count; i++) {
        const struct aster_operation *operation = &call->many.operations[i];
        struct aster_decision denied;
        if (grantor_session_refuses(session, operation, &denied)) {
            grantor_batch_answer(batch, i, ASTER_OK, &denied, NULL);
            continue;
        }
        struct grantor_flight *flight =
            grantor_flight_start(session->state, session, call->id, operation, call->deadline_ms, 0);
        if (flight != NULL) {
            flight->batch = batch;
            flight->slot = i;
        } else {
            grantor_batch_answer(batch, i, ASTER_ERR_NOMEM, NULL, "no memory for the renewal");
        }
    }
}

static void fail(struct aster_renewed *result, aster_status status, const char *message)
{
    result->status = status;
    result->message = aster_text(message);
}

/* A denial carries no value and nothing of the past: a thousand of them must fit into one frame. */
static void deny(struct grantor_batch *batch, size_t slot, const struct aster_decision *decision)
{
    struct aster_renewed *result = &batch->results[slot];
    struct aster_decision shown = *decision;
    shown.snapshot.value = (struct aster_bytes){NULL, 0};
    shown.snapshot.last_holder = (struct aster_bytes){NULL, 0};
    shown.snapshot.last_epoch_held = 0;
    size_t size = shown.snapshot.resource.size + shown.snapshot.holder.size + DENIAL_SIZE;
    if (batch->used + size > ROOM) {
        fail(result, ASTER_ERR_BUSY, "no room for it");
        return;
    }
    grantor_hide_unauthorized(&shown);
    if (aster_reply_set(&batch->kept[slot].reply, &shown) != ASTER_OK) {
        fail(result, ASTER_ERR_NOMEM, "no memory");
        return;
    }
    batch->used += size;
    result->status = ASTER_OK;
    result->decision = batch->kept[slot].reply.decision;
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

void grantor_batch_answer(struct grantor_batch *batch, size_t slot, aster_status status,
                          const struct aster_decision *decision, const char *message)
{
    struct aster_renewed *result = &batch->results[slot];
    if (status != ASTER_OK) {
        size_t size = message != NULL ? strlen(message) : 0;
        if (size > 0 && batch->used + size <= ROOM) {
            batch->kept[slot].message = strdup(message);
            batch->used += size;
        }
        fail(result, status, batch->kept[slot].message != NULL ? batch->kept[slot].message : "failed");
    } else if (decision->outcome == ASTER_GRANTED) {
        grant(result, decision);
    } else {
        deny(batch, slot, decision);
    }
    batch->open--;
    if (batch->open > 0) {
        return;
    }
    if (batch->session != NULL) {
        struct aster_answer answer = {.id = batch->id, .kind = ASTER_ANSWER_RENEWED_MANY};
        answer.renewed.results = batch->results;
        answer.renewed.count = batch->count;
        grantor_session_send(batch->session, &answer);
    }
    destroy(batch);
}

void grantor_batch_abandon(struct grantor_batch *batch)
{
    batch->session = NULL;
}
