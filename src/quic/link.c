#include "quic/link.h"

#include <stdlib.h>

#include "base/error.h"

static void begin_handshake(struct aster_link *link)
{
    struct aster_transport *transport = link->transport;
    link->older = transport->youngest;
    *(link->older != NULL ? &link->older->younger : &transport->oldest) = link;
    transport->youngest = link;
    transport->counts.handshakes++;
}

static void end_handshake(struct aster_link *link)
{
    struct aster_transport *transport = link->transport;
    *(link->older != NULL ? &link->older->younger : &transport->oldest) = link->younger;
    *(link->younger != NULL ? &link->younger->older : &transport->youngest) = link->older;
    link->older = NULL;
    link->younger = NULL;
    transport->counts.handshakes--;
}

void aster_link_evict_oldest(struct aster_transport *transport, const char *why)
{
    struct aster_link *oldest = transport->oldest;
    struct aster_error error;
    if (oldest != NULL) {
        aster_error_set(&error, ASTER_ERR_LIMIT, "the handshake made way for a younger one: %s", why);
        oldest->ops->evict(oldest, &error);
    }
}

void aster_link_make_room(struct aster_transport *transport)
{
    if (transport->counts.handshakes >= transport->options.handshakes_max) {
        aster_link_evict_oldest(transport, "handshakes_max is reached");
    }
}

void aster_link_withdraw(struct aster_link *link)
{
    if (link->accepted) {
        end_handshake(link);
    }
    link->state = ASTER_LINK_CLOSED;
}

bool aster_link_linger(struct aster_link *link)
{
    struct aster_transport_counts *counts = &link->transport->counts;
    if (counts->lingering >= link->transport->options.handshakes_max) {
        return false;
    }
    link->lingering = true;
    counts->lingering++;
    return true;
}

aster_status aster_link_init(struct aster_link *link, struct aster_transport *transport,
                             const struct aster_link_ops *ops, bool accepted, const struct aster_address *remote,
                             struct aster_bytes expected, struct aster_error *error)
{
    const struct aster_transport_options *options = &transport->options;
    aster_status status =
        aster_tls_peer_init(&link->tls, options->credentials, accepted, expected, options->admit, options->user, error);
    if (status != ASTER_OK) {
        return status;
    }
    link->ops = ops;
    link->transport = transport;
    link->user = accepted ? options->user : NULL;
    link->state = ASTER_LINK_HANDSHAKING;
    link->accepted = accepted;
    link->remote = *remote;
    aster_frame_reader_init(&link->in, options->frame_max);
    link->next = transport->links;
    if (link->next != NULL) {
        link->next->previous = link;
    }
    transport->links = link;
    if (accepted) {
        begin_handshake(link);
    }
    return ASTER_OK;
}

void aster_link_fini(struct aster_link *link)
{
    if (link->previous != NULL) {
        link->previous->next = link->next;
    } else {
        link->transport->links = link->next;
    }
    if (link->next != NULL) {
        link->next->previous = link->previous;
    }
    link->transport->counts.lingering -= link->lingering;
    aster_send_queue_fini(&link->out);
    free(link->in.buffer);
    aster_tls_peer_fini(&link->tls);
}

void aster_link_opened(struct aster_link *link)
{
    struct aster_transport *transport = link->transport;
    link->state = ASTER_LINK_OPEN;
    if (link->accepted) {
        end_handshake(link);
        transport->counts.connections++;
        transport->counts.accepted++;
    }
    transport->options.handler->opened(link, link->user);
}

void aster_link_stop(struct aster_link *link, enum aster_link_end end, const char *reason,
                     const struct aster_error *error)
{
    if (link->stopping || link->state == ASTER_LINK_CLOSED) {
        return;
    }
    link->stopping = true;
    link->end = end;
    link->reason = reason;
    if (error != NULL) {
        link->error = *error;
    }
    link->ops->wake(link);
}

/* A buffer that grew for one large frame is not kept for the next small one. */
#define BUFFER_KEPT 4096

static void shrink(struct aster_link *link)
{
    if (link->in.capacity > BUFFER_KEPT && link->in.filled == 0) {
        free(link->in.buffer);
        aster_frame_reader_supply(&link->in, NULL, 0);
    }
}

static bool grow(struct aster_link *link, size_t needed)
{
    unsigned char *grown = realloc(link->in.buffer, needed);
    if (grown == NULL) {
        struct aster_error error;
        aster_error_set(&error, ASTER_ERR_NOMEM, "out of memory for a frame of %zu bytes", needed);
        aster_link_stop(link, ASTER_LINK_END_OVERLOAD, "out of memory", &error);
        return false;
    }
    aster_frame_reader_supply(&link->in, grown, needed);
    return true;
}

size_t aster_link_received(struct aster_link *link, struct aster_bytes bytes)
{
    const struct aster_link_handler *handler = link->transport->options.handler;
    struct aster_error error;
    size_t size = bytes.size;
    while (!link->stopping && link->state == ASTER_LINK_OPEN) {
        struct aster_bytes payload;
        size_t needed = 0;
        enum aster_frame_step step = aster_frame_reader_next(&link->in, &bytes, &payload, &needed);
        if (step == ASTER_FRAME_READY) {
            handler->frame(link, payload, link->user);
        } else if (step == ASTER_FRAME_GROW) {
            if (!grow(link, needed)) {
                break;
            }
        } else if (step == ASTER_FRAME_NONE) {
            break;
        } else {
            aster_error_set(&error, ASTER_ERR_INVALID, "the peer announced a frame of %zu bytes, allowed are 1 to %zu",
                            needed, link->in.payload_max);
            aster_link_stop(link, ASTER_LINK_END_PROTOCOL, "frame size", &error);
        }
    }
    shrink(link);
    if (link->throttled) {
        link->uncredited += size;
        return 0;
    }
    return size;
}

void aster_link_sent(struct aster_link *link, size_t size)
{
    aster_send_queue_release(&link->out, size);
    const struct aster_transport_options *options = &link->transport->options;
    if (link->starved && link->out.size <= options->send_buffer_max / 2 && link->state == ASTER_LINK_OPEN &&
        !link->stopping) {
        link->starved = false;
        if (options->handler->drained != NULL) {
            options->handler->drained(link, link->user);
        }
    }
}

static void report_refusal(struct aster_link *link, const struct aster_error *error)
{
    const struct aster_transport_options *options = &link->transport->options;
    end_handshake(link);
    link->transport->counts.refused++;
    if (options->refused != NULL) {
        options->refused(&link->remote, aster_identity_bytes(&link->tls.seen), error, options->user);
    }
}

void aster_link_finish(struct aster_link *link, enum aster_link_end end, const struct aster_error *error)
{
    enum aster_link_state before = link->state;
    link->state = ASTER_LINK_CLOSED;
    if (before == ASTER_LINK_CLOSED) {
        return;
    }
    if (link->accepted && before == ASTER_LINK_HANDSHAKING) {
        report_refusal(link, error);
        return;
    }
    link->transport->counts.connections -= link->accepted;
    link->transport->options.handler->closed(link, end, error, link->user);
}

aster_status aster_link_send(struct aster_link *link, struct aster_bytes payload, struct aster_error *error)
{
    if (link->state != ASTER_LINK_OPEN || link->stopping) {
        return aster_error_set(error, ASTER_ERR_CLOSED, "the link is not open: nothing was sent");
    }
    if (payload.size == 0 || payload.size > ASTER_FRAME_PAYLOAD_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a frame of %zu bytes cannot be sent, allowed are 1 to %d",
                               payload.size, ASTER_FRAME_PAYLOAD_MAX);
    }
    size_t max = link->transport->options.send_buffer_max;
    if (link->out.size + ASTER_FRAME_HEADER_SIZE + payload.size > max) {
        link->starved = true;
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "send_buffer_max of %zu bytes is reached: the peer reads too slowly", max);
    }
    unsigned char header[ASTER_FRAME_HEADER_SIZE];
    aster_frame_header(header, payload.size);
    aster_status status =
        aster_send_queue_append(&link->out, (struct aster_bytes){header, sizeof header}, payload, error);
    if (status == ASTER_OK) {
        link->ops->wake(link);
    }
    return status;
}

void aster_link_throttle(struct aster_link *link, bool throttled)
{
    bool released = link->throttled && !throttled;
    link->throttled = throttled;
    if (released) {
        link->ops->wake(link);
    }
}

void aster_link_close(struct aster_link *link, const char *reason)
{
    struct aster_error error;
    aster_error_set(&error, ASTER_ERR_CLOSED, "closed by this side: %s", reason);
    aster_link_stop(link, ASTER_LINK_END_LOCAL, reason, &error);
}

void aster_link_turn_away(struct aster_link *link, const char *reason)
{
    struct aster_error error;
    aster_error_set(&error, ASTER_ERR_LIMIT, "turned away by this side: %s", reason);
    aster_link_stop(link, ASTER_LINK_END_OVERLOAD, reason, &error);
}

struct aster_bytes aster_link_identity(const struct aster_link *link)
{
    return aster_identity_bytes(&link->tls.identity);
}

const struct aster_address *aster_link_remote(const struct aster_link *link)
{
    return &link->remote;
}

size_t aster_link_unacknowledged(const struct aster_link *link)
{
    return link->out.size;
}

void aster_link_set_user(struct aster_link *link, void *user)
{
    link->user = user;
}

void *aster_link_user(const struct aster_link *link)
{
    return link->user;
}
