#include "grantor/session.h"

#include <stdlib.h>
#include <string.h>

#include "aster/version.h"
#include "base/error.h"
#include "grantor/batch.h"
#include "grantor/calls.h"
#include "grantor/limits.h"
#include "grantor/log.h"
#include "grantor/outbox.h"
#include "grantor/peers.h"

static void turn_away(struct grantor_session *session, struct aster_link *link, const char *reason)
{
    free(session);
    aster_link_set_user(link, NULL);
    aster_link_turn_away(link, reason);
}

void grantor_session_open(struct grantor_state *state, struct aster_link *link)
{
    struct grantor_session *session = calloc(1, sizeof *session);
    struct grantor_peer *peer = session != NULL ? grantor_peers_join(state->peers, aster_link_identity(link)) : NULL;
    if (peer == NULL) {
        turn_away(session, link, "no memory");
        return;
    }
    if (!grantor_limits_take_session(state, peer)) {
        grantor_peers_leave(state->peers, peer);
        turn_away(session, link, "this node has as many connections as it may");
        return;
    }
    session->state = state;
    session->link = link;
    session->peer = peer;
    session->chunks_end = &session->chunks;
    session->next = state->sessions;
    if (session->next != NULL) {
        session->next->previous = session;
    }
    state->sessions = session;
    aster_link_set_user(link, session);
    if (state->draining) {
        grantor_session_end(session, "shutting down");
    }
}

void grantor_session_close(struct grantor_session *session)
{
    struct grantor_state *state = session->state;
    session->link = NULL;
    session->failed = true;
    atomic_store(&session->gone, true);
    while (session->flights != NULL) {
        grantor_flight_abandon(session->flights);
    }
    grantor_batches_abandon(session);
    grantor_outbox_forget(session);
    grantor_session_forget_reads(session);
    grantor_peers_leave(state->peers, session->peer);
    session->peer = NULL;
    *(session->previous != NULL ? &session->previous->next : &state->sessions) = session->next;
    if (session->next != NULL) {
        session->next->previous = session->previous;
    }
    grantor_session_release(session);
}

void grantor_session_add(struct grantor_session *session, struct grantor_flight *flight)
{
    flight->previous = NULL;
    flight->next = session->flights;
    if (flight->next != NULL) {
        flight->next->previous = flight;
    }
    session->flights = flight;
    grantor_calls_add(session->state->calls, flight);
}

void grantor_session_remove(struct grantor_session *session, struct grantor_flight *flight)
{
    *(flight->previous != NULL ? &flight->previous->next : &session->flights) = flight->next;
    if (flight->next != NULL) {
        flight->next->previous = flight->previous;
    }
    grantor_calls_remove(session->state->calls, flight);
}

void grantor_session_end(struct grantor_session *session, const char *reason)
{
    if (!session->failed) {
        session->failed = true;
        aster_link_close(session->link, reason);
    }
}

bool grantor_session_send(struct grantor_session *session, const struct aster_answer *answer)
{
    struct grantor_state *state = session->state;
    struct aster_error error = ASTER_ERROR_INIT;
    size_t length;
    if (session->failed) {
        return false;
    }
    state->out.used = 0;
    aster_status status =
        aster_answer_encode(answer, &state->out, state->frame, ASTER_FRAME_PAYLOAD_MAX, &length, &error);
    if (status == ASTER_OK) {
        status = grantor_outbox_send(session, (struct aster_bytes){state->frame, length}, &error);
    }
    if (status != ASTER_OK) {
        struct grantor_line line;
        grantor_line_init(&line, GRANTOR_WARNING, "reply-not-sent");
        grantor_line_bytes(&line, "peer", aster_link_identity(session->link));
        grantor_line_text(&line, "error", error.message);
        grantor_line_end(&line);
        grantor_session_end(session, "replies are not read");
    }
    return status == ASTER_OK;
}

bool grantor_session_fail(struct grantor_session *session, uint64_t id, aster_status status, const char *message)
{
    struct aster_answer answer = {.id = id, .kind = ASTER_ANSWER_ERROR};
    answer.error.status = status;
    answer.error.message = aster_text(message != NULL && message[0] != '\0' ? message : aster_status_name(status));
    return grantor_session_send(session, &answer);
}

void grantor_hide_unauthorized(struct aster_decision *decision)
{
    if (decision->reason == ASTER_REASON_UNAUTHORIZED) {
        struct aster_bytes resource = decision->snapshot.resource;
        memset(&decision->snapshot, 0, sizeof decision->snapshot);
        decision->snapshot.resource = resource;
        decision->epoch = 0;
    }
}

bool grantor_session_decided(struct grantor_session *session, uint64_t id, aster_status status,
                             const struct aster_decision *decision, const char *message)
{
    if (status != ASTER_OK) {
        return grantor_session_fail(session, id, status, message);
    }
    if (decision->kind == ASTER_OP_INSPECT && (session->peer->held_bytes > GRANTOR_OUTBOX_READS_MAX ||
                                               session->state->held_bytes > GRANTOR_HELD_BYTES_TOTAL_MAX / 2)) {
        return grantor_session_fail(session, id, ASTER_ERR_LIMIT,
                                    "too many replies wait to be read: read them before asking more");
    }
    struct aster_answer answer = {.id = id, .kind = ASTER_ANSWER_DECISION};
    answer.decision = *decision;
    grantor_hide_unauthorized(&answer.decision);
    return grantor_session_send(session, &answer);
}

bool grantor_session_refuses(struct grantor_session *session, const struct aster_operation *operation,
                             struct aster_decision *decision)
{
    struct grantor_state *state = session->state;
    if (grantor_admission_authorize(operation, state->admission) ||
        grantor_peer_may_audit(session->peer, aster_loop_now_ns(state->loop))) {
        return false;
    }
    *decision = (struct aster_decision){.struct_size = sizeof *decision,
                                        .kind = operation->kind,
                                        .outcome = ASTER_DENIED,
                                        .reason = ASTER_REASON_UNAUTHORIZED,
                                        .carried_epoch = operation->epoch};
    decision->snapshot.resource = operation->resource;
    return true;
}

void grantor_session_deny(struct grantor_session *session, uint64_t id, const char *verb)
{
    struct aster_error error;
    if (grantor_peer_may_audit(session->peer, aster_loop_now_ns(session->state->loop))) {
        struct grantor_line line;
        grantor_line_init(&line, GRANTOR_WARNING, "unauthorized");
        grantor_line_text(&line, "verb", verb);
        grantor_line_bytes(&line, "actor", aster_link_identity(session->link));
        grantor_line_end(&line);
    }
    aster_error_set(&error, ASTER_ERR_REFUSED, "UNAUTHORIZED: %s needs a role that this identity does not have", verb);
    grantor_session_fail(session, id, error.status, error.message);
}

static void greet(struct grantor_session *session, const struct aster_call *call)
{
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_answer answer = {.id = call->id, .kind = ASTER_ANSWER_ACCEPTED};
    answer.accepted.version = call->hello.version < ASTER_WIRE_VERSION ? call->hello.version : ASTER_WIRE_VERSION;
    answer.accepted.identity = aster_link_identity(session->link);
    answer.accepted.agent = aster_text("asterd/" ASTER_VERSION_TEXT);
    answer.accepted.ttl_min_ms = limits.ttl_min_ms;
    answer.accepted.ttl_max_ms = limits.ttl_max_ms;
    answer.accepted.value_max_bytes = (uint32_t)limits.value_max_bytes;
    answer.accepted.in_flight_max = session->state->in_flight_max;
    session->greeted = true;
    grantor_session_send(session, &answer);
}

static bool has_room(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_state *state = session->state;
    struct aster_error error;
    if (state->draining) {
        grantor_session_fail(session, call->id, ASTER_ERR_CLOSED,
                             "the server is shutting down: try another one, or again");
        return false;
    }
    if (!grantor_limits_take_call(state, session->peer, call, &error)) {
        grantor_session_fail(session, call->id, error.status, error.message);
        return false;
    }
    return true;
}

static void start_one(struct grantor_session *session, const struct aster_call *call)
{
    struct aster_decision denied;
    if (grantor_session_refuses(session, &call->one.operation, &denied)) {
        grantor_session_decided(session, call->id, ASTER_OK, &denied, NULL);
    } else if (grantor_flight_start(session->state, session, call->id, &call->one.operation, call->deadline_ms,
                                    call->one.wait_ms) == NULL) {
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no memory for the request");
    }
}

static void cancel(struct grantor_session *session, uint64_t id)
{
    if (grantor_session_unwatch(session, id)) {
        return;
    }
    struct grantor_flight *flight = grantor_calls_find(session->state->calls, session, id);
    if (flight != NULL) { /* renewals of a batch are not listed: they are decided as they arrive */
        grantor_flight_cancel(flight);
    }
}

static void take(struct grantor_session *session, const struct aster_call *call)
{
    if (!session->greeted || call->kind == ASTER_CALL_HELLO) {
        if (session->greeted || call->kind != ASTER_CALL_HELLO) {
            grantor_session_end(session, "hello is the first message, and only that");
            return;
        }
        greet(session, call);
    } else if (call->kind == ASTER_CALL_CANCEL) {
        cancel(session, call->cancel_id);
    } else if (!has_room(session, call)) {
        return;
    } else if (call->kind == ASTER_CALL_OPERATION) {
        start_one(session, call);
    } else if (call->kind == ASTER_CALL_RENEW_MANY) {
        grantor_batch_start(session, call);
    } else if (call->kind >= ASTER_CALL_NODE_ADD) {
        grantor_session_order(session, call);
    } else {
        grantor_session_ask(session, call);
    }
}

void grantor_session_frame(struct grantor_session *session, struct aster_bytes payload)
{
    struct grantor_state *state = session->state;
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_call call;
    uint64_t id = 0;
    if (session->failed) {
        return;
    }
    state->in.used = 0;
    aster_status status =
        aster_call_decode(payload, aster_link_identity(session->link), &limits, &state->in, &call, &id, &error);
    if (status == ASTER_OK) {
        take(session, &call);
    } else if (id != 0 && session->greeted) {
        grantor_session_fail(session, id, status, error.message);
    } else {
        grantor_session_end(session, "not a request");
    }
}
