#include "grantor/flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "grantor/calls.h"
#include "grantor/parking.h"
#include "grantor/peers.h"
#include "grantor/reader.h"
#include "grantor/repeats.h"
#include "grantor/session.h"

#define SUBMIT_MAX 1024

static int64_t clock_ns(const struct grantor_state *state)
{
    return aster_clock_now_ns(aster_serializer_clock(state->serializer));
}

static char *keep(struct aster_bytes *bytes, char *to)
{
    if (bytes->size > 0) {
        memcpy(to, bytes->data, bytes->size);
    }
    bytes->data = to;
    return to + bytes->size;
}

static void count_down(struct grantor_flight *flight)
{
    struct grantor_state *state = flight->state;
    state->flights--;
    state->flight_bytes -= flight->size;
    if (flight->peer != NULL) {
        flight->peer->in_flight--;
        flight->peer->bytes -= flight->size;
        grantor_peers_settle(state->peers, flight->peer);
    }
}

static void count_up(struct grantor_flight *flight)
{
    struct grantor_state *state = flight->state;
    state->flights++;
    state->flight_bytes += flight->size;
    if (flight->peer != NULL) {
        flight->peer->in_flight++;
        flight->peer->bytes += flight->size;
    }
}

static void destroy(struct grantor_flight *flight)
{
    count_down(flight);
    if (flight->own) {
        grantor_admission_unexempt(flight->state->admission, &flight->exemption);
    }
    grantor_repeats_remove(flight->state->repeats, flight);
    aster_reply_fini(&flight->reply);
    free(flight->message);
    free(flight);
}

static void run_answer(struct aster_task *task)
{
    struct grantor_flight *flight = (void *)((char *)task - offsetof(struct grantor_flight, task));
    grantor_flight_answer(flight, flight->status, flight->status == ASTER_OK ? &flight->reply.decision : NULL,
                          flight->message);
}

/* On any thread; on the loop's own it is the answer at once, without a copy. */
static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct grantor_flight *flight = request->user;
    if (aster_loop_is_current(flight->state->loop)) {
        grantor_flight_answer(flight, status, decision, error != NULL ? error->message : NULL);
        return;
    }
    flight->status = status;
    if (status == ASTER_OK && aster_reply_set(&flight->reply, decision) != ASTER_OK) {
        flight->status = ASTER_ERR_INDETERMINATE; /* not NOMEM: that would promise that nothing was applied */
    }
    flight->message = status != ASTER_OK && error != NULL ? strdup(error->message) : NULL;
    aster_loop_post(flight->state->loop, &flight->task);
}

static struct grantor_flight *create(struct grantor_state *state, struct grantor_session *session, uint64_t id,
                                     const struct aster_operation *operation)
{
    size_t size = operation->resource.size + operation->caller.size + operation->value.size + operation->holder.size;
    struct grantor_flight *flight = calloc(1, sizeof *flight + size);
    if (flight == NULL) {
        return NULL;
    }
    flight->request = (struct aster_request)ASTER_REQUEST_INIT;
    flight->request.operation = *operation;
    flight->request.complete = complete;
    flight->request.user = flight;
    char *at = keep(&flight->request.operation.resource, flight->bytes);
    at = keep(&flight->request.operation.caller, at);
    at = keep(&flight->request.operation.value, at);
    keep(&flight->request.operation.holder, at);
    flight->task.run = run_answer;
    flight->state = state;
    flight->session = session;
    flight->peer = session != NULL ? session->peer : NULL;
    flight->id = id;
    flight->size = sizeof *flight + size;
    flight->reply = (struct aster_reply)ASTER_REPLY_INIT;
    count_up(flight);
    grantor_repeats_add(state->repeats, flight);
    return flight;
}

struct grantor_flight *grantor_flight_start(struct grantor_state *state, struct grantor_session *session, uint64_t id,
                                            const struct aster_operation *operation, uint32_t deadline_ms,
                                            uint32_t wait_ms)
{
    struct grantor_flight *flight = create(state, session, id, operation);
    if (flight == NULL) {
        return NULL;
    }
    int64_t bound_ms = deadline_ms > 0 ? deadline_ms : (int64_t)wait_ms + GRANTOR_DEADLINE_DEFAULT_MS;
    int64_t now_ns = clock_ns(state);
    flight->request.deadline_ns = aster_add_saturated(now_ns, aster_ms_to_ns(bound_ms));
    if (wait_ms > 0 && state->parking == NULL) {
        flight->request.wait_until_ns = aster_add_saturated(now_ns, aster_ms_to_ns(wait_ms));
    } else if (wait_ms > 0) {
        flight->give_up_ns = aster_loop_now_ns(state->loop) + aster_ms_to_ns(wait_ms < bound_ms ? wait_ms : bound_ms);
    }
    if (session != NULL) {
        grantor_session_add(session, flight);
    } else {
        flight->own = true;
        grantor_admission_exempt(state->admission, &flight->request.operation, &flight->exemption);
    }
    if (state->parking == NULL || !grantor_parking_join(state->parking, flight)) {
        grantor_flight_launch(flight);
    }
    return flight;
}

void grantor_flight_launch(struct grantor_flight *flight)
{
    struct grantor_state *state = flight->state;
    bool renewal = flight->request.operation.kind == ASTER_OP_RENEW;
    struct grantor_flight ***end = renewal ? &state->renewals_end : &state->others_end;
    flight->pending = NULL;
    **end = flight;
    *end = &flight->pending;
}

/* A grant that nobody can receive is given back, so that the next one need not wait for its ttl. One that was or will
 * be replayed belongs to whoever repeated the request. */
static void undo(const struct grantor_flight *lost, const struct aster_decision *decision)
{
    struct grantor_state *state = lost->state;
    const struct aster_operation *granted = &lost->request.operation;
    if (granted->kind != ASTER_OP_ACQUIRE || decision == NULL || decision->outcome != ASTER_GRANTED ||
        decision->replayed || state->ended || grantor_repeats_has_another(state->repeats, lost)) {
        return;
    }
    struct aster_operation release = ASTER_OPERATION_INIT;
    release.kind = ASTER_OP_RELEASE;
    release.resource = granted->resource;
    release.caller = granted->caller;
    release.epoch = decision->epoch;
    grantor_flight_start(state, NULL, 0, &release, 0, 0); /* out of memory: the lease lapses at its ttl */
}

void grantor_flight_cancel(struct grantor_flight *flight)
{
    struct grantor_state *state = flight->state;
    if (flight->cancelled) {
        return; /* said again: nothing is left to do */
    }
    flight->cancelled = true;
    if (state->parking != NULL && grantor_parking_leave(state->parking, flight)) {
        grantor_flight_answer(flight, ASTER_ERR_CANCELLED, NULL, "the client cancelled");
    } else if (flight->submitted) {
        aster_serializer_cancel(state->serializer, &flight->request);
    }
}

void grantor_flight_abandon(struct grantor_flight *flight)
{
    grantor_session_remove(flight->session, flight);
    flight->session = NULL;
    if (flight->request.operation.kind == ASTER_OP_ACQUIRE) {
        grantor_flight_cancel(flight);
    }
}

static bool frees(const struct aster_decision *decision)
{
    return decision->kind == ASTER_OP_RELEASE || decision->kind == ASTER_OP_REVOKE || decision->kind == ASTER_OP_FORGET;
}

void grantor_flight_answer(struct grantor_flight *flight, aster_status status, const struct aster_decision *decision,
                           const char *message)
{
    struct grantor_state *state = flight->state;
    bool granted = decision != NULL && decision->outcome == ASTER_GRANTED;
    flight->submitted = false;
    if (status == ASTER_ERR_CANCELLED && state->draining && !flight->cancelled) {
        status = ASTER_ERR_CLOSED;
        message = "the server is shutting down: try another one, or again";
    }
    if (state->parking != NULL && grantor_parking_keep(state->parking, flight, status, decision)) {
        return;
    }
    grantor_count_decision(&state->counters, flight->request.operation.kind, status, decision);
    if (granted && decision->kind != ASTER_OP_RENEW && decision->kind != ASTER_OP_INSPECT) {
        grantor_reader_poke(state->reader);
    }
    if (state->parking != NULL && granted && frees(decision)) {
        grantor_parking_wake(state->parking, flight->request.operation.resource);
    }
    if (flight->session != NULL) {
        struct grantor_session *session = flight->session;
        grantor_session_remove(session, flight);
        if (!grantor_session_decided(session, flight->id, status, decision, message)) {
            undo(flight, decision);
        }
    } else if (!flight->own) {
        undo(flight, decision);
    }
    if (flight->done != NULL) {
        flight->done(flight->done_user, status, decision);
    }
    destroy(flight);
}

/* Nobody waits for an acquire whose link went before it was submitted; everything else is done for a client that has
 * said good-bye: a release, above all. */
static bool is_moot(const struct grantor_flight *flight)
{
    return flight->request.operation.kind == ASTER_OP_ACQUIRE && (flight->session == NULL || flight->cancelled);
}

static void submit(struct grantor_state *state, struct grantor_flight **list, struct grantor_flight ***end)
{
    struct aster_request *requests[SUBMIT_MAX];
    while (*list != NULL) {
        size_t count = 0;
        for (; *list != NULL && count < SUBMIT_MAX;) {
            struct grantor_flight *flight = *list;
            *list = flight->pending;
            if (*list == NULL) {
                *end = list;
            }
            if (is_moot(flight)) {
                grantor_flight_answer(flight, ASTER_ERR_CANCELLED, NULL, "the client cancelled");
                continue;
            }
            flight->submitted = true;
            requests[count++] = &flight->request;
        }
        aster_serializer_submit_many(state->serializer, requests, count);
    }
}

void grantor_flights_submit(struct grantor_state *state)
{
    while (state->renewals != NULL || state->others != NULL) {
        submit(state, &state->renewals, &state->renewals_end);
        submit(state, &state->others, &state->others_end);
    }
}

void grantor_flights_dismiss(struct grantor_state *state)
{
    grantor_flights_submit(state); /* only what has been submitted can be cancelled */
    for (struct grantor_session *session = state->sessions; session != NULL; session = session->next) {
        struct grantor_flight *next;
        for (struct grantor_flight *flight = session->flights; flight != NULL; flight = next) {
            next = flight->next; /* the answer may come, and free the flight, inside the call */
            if (flight->submitted && flight->request.wait_until_ns > 0) {
                aster_serializer_cancel(state->serializer, &flight->request);
            }
        }
    }
}
