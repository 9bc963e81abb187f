#include "quic/endpoint.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "platform/entropy.h"
#include "quic/connection.h"

static void route(const struct aster_datagram *datagram, void *user)
{
    struct aster_listener *listener = user;
    struct aster_endpoint *endpoint = listener->endpoint;
    ngtcp2_version_cid ids;
    int code = datagram->size > 0 ? ngtcp2_pkt_decode_version_cid(&ids, datagram->data, datagram->size, ASTER_CID_SIZE)
                                  : NGTCP2_ERR_INVALID_ARGUMENT;
    if (code == NGTCP2_ERR_VERSION_NEGOTIATION) {
        aster_endpoint_offer_version(endpoint, listener, datagram, &ids);
        return;
    }
    if (code != 0) {
        endpoint->transport.counts.ignored++;
        return;
    }
    struct aster_connection *connection = aster_cid_table_find(&endpoint->cids, ids.dcid, ids.dcidlen);
    if (connection != NULL) {
        aster_connection_read(connection, datagram);
    } else if (datagram->data[0] & 0x80) { /* long header */
        aster_endpoint_accept(endpoint, listener, datagram);
    } else {
        aster_endpoint_reset(endpoint, listener, datagram, ids.dcid);
    }
}

static void listener_ready(struct aster_watch *watch, uint32_t events)
{
    (void)events;
    struct aster_listener *listener = (struct aster_listener *)watch;
    /* An error is the echo of an earlier send; the next call reads on. */
    aster_udp_receive(&listener->udp, listener->endpoint->inbox, route, listener);
}

/* Everything that the round produced leaves with as few system calls as possible, and only then memory is freed that
 * the packets may come from. */
static void end_round(struct aster_round *round, int64_t now_ns)
{
    (void)now_ns;
    struct aster_endpoint *endpoint = (struct aster_endpoint *)((char *)round - offsetof(struct aster_endpoint, round));
    struct aster_connection *dead = NULL;
    while (endpoint->dirty != NULL) {
        struct aster_connection *connection = endpoint->dirty;
        endpoint->dirty = connection->next_dirty;
        connection->dirty = false;
        aster_connection_write(connection);
        if (connection->phase == ASTER_CONNECTION_DEAD && !connection->dirty) {
            connection->next_dirty = dead;
            dead = connection;
        }
    }
    aster_udp_outbox_flush(endpoint->outbox);
    while (dead != NULL) {
        struct aster_connection *connection = dead;
        dead = connection->next_dirty;
        aster_connection_free(connection);
    }
}

static aster_status open_listener(struct aster_endpoint *endpoint, const struct aster_address *local,
                                  struct aster_listener *listener, struct aster_error *error)
{
    aster_status status = aster_udp_listen(local, &listener->udp, error);
    if (status != ASTER_OK) {
        return status;
    }
    listener->endpoint = endpoint;
    listener->watch = (struct aster_watch){listener_ready, listener->udp.fd};
    status = aster_loop_add(endpoint->transport.options.loop, &listener->watch, EPOLLIN, error);
    if (status != ASTER_OK) {
        aster_udp_close(&listener->udp);
    }
    return status;
}

static aster_status quic_listen(struct aster_transport *transport, const struct aster_address *local,
                                struct aster_address *bound, struct aster_error *error)
{
    struct aster_endpoint *endpoint = aster_endpoint_of(transport);
    struct aster_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a listener");
    }
    aster_status status = open_listener(endpoint, local, listener, error);
    if (status != ASTER_OK) {
        free(listener);
        return status;
    }
    listener->next = endpoint->listeners;
    endpoint->listeners = listener;
    if (bound != NULL) {
        *bound = listener->udp.local;
    }
    return ASTER_OK;
}

static aster_status quic_connect(struct aster_transport *transport, const struct aster_address *remote,
                                 struct aster_bytes expected, void *user, struct aster_link **link,
                                 struct aster_error *error)
{
    struct aster_connection *connection;
    aster_status status =
        aster_connection_connect(aster_endpoint_of(transport), remote, expected, user, &connection, error);
    if (status == ASTER_OK) {
        *link = &connection->link;
    }
    return status;
}

static void free_endpoint(struct aster_endpoint *endpoint)
{
    aster_udp_inbox_destroy(endpoint->inbox);
    aster_udp_outbox_destroy(endpoint->outbox);
    aster_cid_table_fini(&endpoint->cids);
    aster_transport_fini(&endpoint->transport);
    gnutls_memset(endpoint->transport.options.secret, 0, sizeof endpoint->transport.options.secret);
    free(endpoint);
}

static void quic_destroy(struct aster_transport *transport)
{
    struct aster_endpoint *endpoint = aster_endpoint_of(transport);
    struct aster_loop *loop = transport->options.loop;
    struct aster_error error;
    aster_error_set(&error, ASTER_ERR_CLOSED, "the endpoint is being closed");
    for (struct aster_link *link = transport->links; link != NULL; link = link->next) {
        aster_link_stop(link, ASTER_LINK_END_LOCAL, "shutting down", &error);
    }
    end_round(&endpoint->round, aster_loop_now_ns(loop));
    while (transport->links != NULL) {
        aster_connection_free(aster_connection_of(transport->links));
    }
    while (endpoint->listeners != NULL) {
        struct aster_listener *listener = endpoint->listeners;
        endpoint->listeners = listener->next;
        aster_loop_remove(loop, &listener->watch);
        aster_udp_close(&listener->udp);
        free(listener);
    }
    aster_loop_round_remove(loop, &endpoint->round);
    free_endpoint(endpoint);
}

static void quic_count(const struct aster_transport *transport, struct aster_transport_counts *counts)
{
    const struct aster_endpoint *endpoint = (const struct aster_endpoint *)transport;
    aster_udp_outbox_counts(endpoint->outbox, &counts->datagrams_sent, &counts->send_calls);
}

static const struct aster_transport_ops quic_ops = {"quic", quic_listen, quic_connect, quic_destroy, quic_count};

static aster_status add_round(void *argument)
{
    struct aster_endpoint *endpoint = argument;
    aster_loop_round_add(endpoint->transport.options.loop, &endpoint->round);
    return ASTER_OK;
}

static aster_status fill_secret(unsigned char secret[ASTER_ENDPOINT_SECRET_SIZE], struct aster_error *error)
{
    static const unsigned char none[ASTER_ENDPOINT_SECRET_SIZE];
    return memcmp(secret, none, sizeof none) == 0 ? aster_entropy_fill(secret, ASTER_ENDPOINT_SECRET_SIZE, error)
                                                  : ASTER_OK;
}

aster_status aster_quic_transport_create(const struct aster_transport_options *options,
                                         struct aster_transport **transport, struct aster_error *error)
{
    struct aster_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (endpoint == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for an endpoint");
    }
    aster_status status = aster_transport_init(&endpoint->transport, &quic_ops, options, error);
    if (status != ASTER_OK) {
        free(endpoint);
        return status;
    }
    endpoint->round.end = end_round;
    endpoint->inbox = aster_udp_inbox_create();
    endpoint->outbox = aster_udp_outbox_create();
    if (endpoint->inbox == NULL || endpoint->outbox == NULL) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for an endpoint");
    }
    if (status == ASTER_OK) {
        status = aster_cid_table_init(&endpoint->cids, error);
    }
    if (status == ASTER_OK) {
        status = fill_secret(endpoint->transport.options.secret, error);
    }
    if (status != ASTER_OK) {
        free_endpoint(endpoint);
        return status;
    }
    aster_loop_call(endpoint->transport.options.loop, add_round, endpoint);
    *transport = &endpoint->transport;
    return ASTER_OK;
}
