#include "grantor/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/limits.h"
#include "grantor/log.h"
#include "grantor/page.h"
#include "grantor/peers.h"

#define LOOK_NS INT64_C(1000000000)
#define STALL_NS INT64_C(30000000000)

static void end_stalled(struct grantor_session *session)
{
    struct grantor_line line;
    grantor_line_init(&line, GRANTOR_WARNING, "reply-not-sent");
    grantor_line_bytes(&line, "peer", aster_link_identity(session->link));
    grantor_line_text(&line, "error", "the peer acknowledges nothing");
    grantor_line_end(&line);
    grantor_session_end(session, "replies are not read");
}

static void look(struct aster_timer *timer, int64_t now_ns)
{
    struct grantor_state *state = (void *)((char *)timer - offsetof(struct grantor_state, outbox_timer));
    bool waiting = false;
    for (struct grantor_session *session = state->sessions; session != NULL; session = session->next) {
        if (session->held == NULL || session->failed) {
            continue;
        }
        size_t left = aster_link_unacknowledged(session->link);
        if (left != session->left) {
            session->left = left;
            session->moved_ns = now_ns;
        } else if (now_ns - session->moved_ns >= STALL_NS) {
            end_stalled(session);
            continue;
        }
        waiting = true;
    }
    if (waiting) {
        aster_timers_set(aster_loop_timers(state->loop), timer, now_ns + LOOK_NS);
    }
}

aster_status grantor_outbox_open(struct grantor_state *state, struct aster_error *error)
{
    aster_status status = aster_timers_reserve(aster_loop_timers(state->loop), error);
    state->outbox_timer.fire = status == ASTER_OK ? look : NULL;
    return status;
}

void grantor_outbox_close(struct grantor_state *state)
{
    if (state->outbox_timer.fire != NULL) {
        aster_timers_unset(aster_loop_timers(state->loop), &state->outbox_timer);
        aster_timers_unreserve(aster_loop_timers(state->loop));
        state->outbox_timer.fire = NULL;
    }
}

static void begin(struct grantor_session *session)
{
    struct grantor_state *state = session->state;
    session->held_end = &session->held;
    session->left = aster_link_unacknowledged(session->link);
    session->moved_ns = aster_loop_now_ns(state->loop);
    aster_link_throttle(session->link, true);
    if (state->outbox_timer.slot == 0) {
        aster_timers_set(aster_loop_timers(state->loop), &state->outbox_timer, session->moved_ns + LOOK_NS);
    }
}

static aster_status hold(struct grantor_session *session, struct aster_bytes frame, struct aster_error *error)
{
    struct grantor_peer *peer = session->peer;
    if (peer->held_bytes + frame.size > GRANTOR_OUTBOX_MAX ||
        session->state->held_bytes + frame.size > GRANTOR_HELD_BYTES_TOTAL_MAX) {
        return aster_error_set(error, ASTER_ERR_LIMIT, "%zu bytes of replies wait: the peer reads too slowly",
                               peer->held_bytes);
    }
    struct grantor_chunk *chunk = malloc(sizeof *chunk + frame.size);
    if (chunk == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a reply of %zu bytes", frame.size);
    }
    chunk->next = NULL;
    chunk->size = frame.size;
    memcpy(chunk->payload, frame.data, frame.size);
    if (session->held == NULL) {
        begin(session);
    }
    *session->held_end = chunk;
    session->held_end = &chunk->next;
    session->held_bytes += chunk->size;
    session->state->held_bytes += chunk->size;
    peer->held_bytes += chunk->size;
    peer->in_flight++;
    return ASTER_OK;
}

static void drop_first(struct grantor_session *session)
{
    struct grantor_chunk *chunk = session->held;
    session->held = chunk->next;
    session->held_bytes -= chunk->size;
    session->state->held_bytes -= chunk->size;
    session->peer->held_bytes -= chunk->size;
    session->peer->in_flight--;
    free(chunk);
}

aster_status grantor_outbox_send(struct grantor_session *session, struct aster_bytes frame, struct aster_error *error)
{
    if (session->held == NULL) {
        aster_status status = aster_link_send(session->link, frame, error);
        if (status != ASTER_ERR_LIMIT) {
            return status;
        }
    }
    return hold(session, frame, error);
}

void grantor_outbox_drained(struct grantor_session *session)
{
    if (session->held == NULL) {
        return;
    }
    while (session->held != NULL) {
        struct grantor_chunk *chunk = session->held;
        struct aster_bytes frame = {chunk->payload, chunk->size};
        if (aster_link_send(session->link, frame, NULL) != ASTER_OK) {
            break; /* until it is drained again, or looked at for too long */
        }
        drop_first(session);
    }
    session->left = aster_link_unacknowledged(session->link);
    session->moved_ns = aster_loop_now_ns(session->state->loop);
    if (session->held == NULL) {
        aster_link_throttle(session->link, false);
    }
}

void grantor_outbox_forget(struct grantor_session *session)
{
    while (session->held != NULL) {
        drop_first(session);
    }
}
