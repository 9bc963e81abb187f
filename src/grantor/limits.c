#include "grantor/limits.h"

#include "base/error.h"
#include "grantor/log.h"

#define COMPLAINT_NS INT64_C(1000000000)

bool grantor_limits_take_session(const struct grantor_state *state, struct grantor_peer *peer)
{
    int64_t now_ns = aster_loop_now_ns(state->loop);
    if (peer->sessions <= state->connections_max) {
        return true;
    }
    if (now_ns - peer->complained_ns >= COMPLAINT_NS) {
        struct grantor_line line;
        peer->complained_ns = now_ns;
        grantor_line_init(&line, GRANTOR_WARNING, "too-many-connections");
        grantor_line_bytes(&line, "peer", (struct aster_bytes){peer->identity, peer->size});
        grantor_line_number(&line, "connections-max", (int64_t)state->connections_max);
        grantor_line_end(&line);
    }
    return false;
}

static bool refuse(struct aster_error *error, const char *limit, size_t value)
{
    aster_error_set(error, ASTER_ERR_LIMIT, "%s is %zu and reached: wait for answers before asking more", limit, value);
    return false;
}

bool grantor_limits_take_call(const struct grantor_state *state, const struct grantor_peer *peer,
                              const struct aster_call *call, struct aster_error *error)
{
    bool many = call->kind == ASTER_CALL_RENEW_MANY;
    bool renewal = many || (call->kind == ASTER_CALL_OPERATION && call->one.operation.kind == ASTER_OP_RENEW);
    size_t wanted = many ? call->many.count : 1;
    size_t total_max = state->in_flight_total_max + (renewal ? state->in_flight_total_max / 4 : 0);
    if (peer->in_flight + wanted > state->in_flight_max) {
        return refuse(error, "in-flight-max", state->in_flight_max);
    }
    if (peer->bytes >= state->in_flight_max * GRANTOR_OPERATION_BYTES) {
        return refuse(error, "the bytes that one identity may have in flight", peer->bytes);
    }
    if (state->flights + wanted > total_max) {
        return refuse(error, "in-flight-total-max", total_max);
    }
    if (state->flight_bytes >= total_max * GRANTOR_OPERATION_BYTES) {
        return refuse(error, "the bytes that all may have in flight", state->flight_bytes);
    }
    return true;
}

bool grantor_limits_have_room_for_reads(const struct grantor_state *state, const struct grantor_peer *peer)
{
    return peer->read_bytes < GRANTOR_READ_BYTES_MAX && state->read_bytes < GRANTOR_READ_BYTES_TOTAL_MAX;
}

bool grantor_limits_take_read(const struct grantor_state *state, const struct grantor_peer *peer, bool watch,
                              struct aster_error *error)
{
    if (peer->reads >= GRANTOR_READS_MAX) {
        return refuse(error, "the number of reads that one identity may have at once", GRANTOR_READS_MAX);
    }
    if (watch && peer->watches >= GRANTOR_WATCHES_MAX) {
        return refuse(error, "the number of watches that one identity may have", GRANTOR_WATCHES_MAX);
    }
    if (state->reads >= GRANTOR_READS_TOTAL_MAX) {
        return refuse(error, "the number of reads that all may have at once", GRANTOR_READS_TOTAL_MAX);
    }
    if (!grantor_limits_have_room_for_reads(state, peer)) {
        return refuse(error, "the bytes of replies that may wait to be read", peer->read_bytes);
    }
    return true;
}
