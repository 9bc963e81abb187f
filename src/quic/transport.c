/* What does not depend on the carrier. */
#include "quic/transport.h"

#include <stdlib.h>

#include "base/error.h"
#include "quic/link.h"

const char *aster_link_end_name(enum aster_link_end end)
{
    static const char *const names[] = {"UNKNOWN",     "LOCAL",     "PEER",     "REFUSED",
                                        "UNREACHABLE", "FORGOTTEN", "PROTOCOL", "OVERLOAD"};
    return (size_t)end < sizeof names / sizeof names[0] ? names[end] : names[0];
}

aster_status aster_transport_init(struct aster_transport *transport, const struct aster_transport_ops *ops,
                                  const struct aster_transport_options *options, struct aster_error *error)
{
    const struct aster_transport_options defaults = ASTER_TRANSPORT_OPTIONS_INIT;
    transport->options = defaults;
    size_t size = options->struct_size < sizeof defaults ? options->struct_size : sizeof defaults;
    memcpy(&transport->options, options, size);
    struct aster_transport_options *used = &transport->options;
    used->struct_size = sizeof *used;
    if (used->loop == NULL || used->credentials == NULL || used->admit == NULL || used->handler == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a transport needs a loop, credentials, admit and a handler");
    }
    if (used->frame_max == 0 || used->frame_max > ASTER_FRAME_PAYLOAD_MAX) {
        used->frame_max = ASTER_FRAME_PAYLOAD_MAX;
    }
    if (used->send_buffer_max < 2 * (ASTER_FRAME_PAYLOAD_MAX + ASTER_FRAME_HEADER_SIZE)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "send_buffer_max is %zu bytes, at least %d are needed for two frames",
                               used->send_buffer_max, 2 * (ASTER_FRAME_PAYLOAD_MAX + ASTER_FRAME_HEADER_SIZE));
    }
    if (used->idle_timeout_ms < 100 || used->handshake_timeout_ms < 100 || used->keep_alive_ms < 10 ||
        used->keep_alive_ms >= used->idle_timeout_ms || used->receive_window < 16384) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "timeouts: handshake and idle at least 100 ms, keep_alive at least 10 ms and below idle; "
            "receive_window at least 16384 bytes");
    }
    transport->ops = ops;
    aster_credentials_ref(used->credentials);
    return ASTER_OK;
}

void aster_transport_fini(struct aster_transport *transport)
{
    aster_credentials_unref(transport->options.credentials);
}

const char *aster_transport_name(const struct aster_transport *transport)
{
    return transport->ops->name;
}

struct aster_transport_counts aster_transport_counts(const struct aster_transport *transport)
{
    struct aster_transport_counts counts = transport->counts;
    if (transport->ops->count != NULL) {
        transport->ops->count(transport, &counts);
    }
    return counts;
}

static aster_status run_destroy(void *argument)
{
    struct aster_transport *transport = argument;
    transport->ending = true;
    transport->ops->destroy(transport);
    return ASTER_OK;
}

void aster_transport_destroy(struct aster_transport *transport)
{
    if (transport != NULL) {
        aster_loop_call(transport->options.loop, run_destroy, transport);
    }
}

struct listening {
    struct aster_transport *transport;
    const struct aster_address *local;
    struct aster_address *bound;
    struct aster_error *error;
};

static aster_status run_listen(void *argument)
{
    struct listening *listening = argument;
    return listening->transport->ops->listen(listening->transport, listening->local, listening->bound,
                                             listening->error);
}

aster_status aster_transport_listen(struct aster_transport *transport, const struct aster_address *local,
                                    struct aster_address *bound, struct aster_error *error)
{
    struct listening listening = {transport, local, bound, error};
    return aster_loop_call(transport->options.loop, run_listen, &listening);
}

aster_status aster_transport_connect(struct aster_transport *transport, const struct aster_address *remote,
                                     struct aster_bytes expected, void *user, struct aster_link **link,
                                     struct aster_error *error)
{
    if (transport->ending) {
        return aster_error_set(error, ASTER_ERR_CLOSED, "the transport is being closed: no new connection");
    }
    return transport->ops->connect(transport, remote, expected, user, link, error);
}

struct reloading {
    struct aster_transport *transport;
    struct aster_credentials *credentials;
    size_t ended;
};

/* A link that only a root of before vouched for must not outlive it. */
static size_t judge_all(struct aster_transport *transport)
{
    size_t ended = 0;
    for (struct aster_link *link = transport->links; link != NULL; link = link->next) {
        struct aster_error error = ASTER_ERROR_INIT;
        if (link->state == ASTER_LINK_OPEN && !link->stopping &&
            aster_tls_peer_judge_again(&link->tls, transport->options.credentials, &error) != ASTER_OK) {
            aster_link_stop(link, ASTER_LINK_END_REFUSED, "no longer trusted", &error);
            ended++;
        }
    }
    return ended;
}

static aster_status run_reload(void *argument)
{
    struct reloading *reloading = argument;
    struct aster_transport *transport = reloading->transport;
    struct aster_credentials *old = transport->options.credentials;
    transport->options.credentials = aster_credentials_ref(reloading->credentials);
    if (!aster_credentials_same_roots(old, reloading->credentials)) {
        reloading->ended = judge_all(transport);
    }
    aster_credentials_unref(old);
    return ASTER_OK;
}

size_t aster_transport_reload(struct aster_transport *transport, struct aster_credentials *credentials)
{
    struct reloading reloading = {transport, credentials, 0};
    aster_loop_call(transport->options.loop, run_reload, &reloading);
    return reloading.ended;
}

size_t aster_transport_expel(struct aster_transport *transport, struct aster_bytes identity)
{
    struct aster_error error;
    size_t count = 0;
    aster_error_set(&error, ASTER_ERR_INVALID, "the node was removed");
    for (struct aster_link *link = transport->links; link != NULL; link = link->next) {
        if (link->state == ASTER_LINK_OPEN && !link->stopping &&
            aster_bytes_equal(aster_link_identity(link), identity)) {
            aster_link_stop(link, ASTER_LINK_END_REFUSED, "not admitted", &error);
            count++;
        }
    }
    return count;
}
