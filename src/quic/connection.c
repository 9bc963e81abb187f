#include "quic/connection.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "base/error.h"

#define INITIAL_RTT_MS 100
#define MAX_ACK_DELAY_MS 5
#define PIECES 8
#define HOLD_NS INT64_C(4000000) /* less than MAX_ACK_DELAY_MS, which the peer reckons with */

static void wake(struct aster_link *link)
{
    aster_connection_mark(aster_connection_of(link));
}

static const struct aster_link_ops quic_link_ops = {wake, aster_connection_evict};

void aster_connection_mark(struct aster_connection *connection)
{
    if (!connection->dirty) {
        connection->dirty = true;
        connection->next_dirty = connection->endpoint->dirty;
        connection->endpoint->dirty = connection;
    }
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
    struct aster_connection *connection = ref->user_data;
    return connection->conn;
}

static void fire(struct aster_timer *timer, int64_t now_ns)
{
    struct aster_connection *connection =
        (struct aster_connection *)((char *)timer - offsetof(struct aster_connection, timer));
    if (connection->phase != ASTER_CONNECTION_LIVE) {
        connection->phase = ASTER_CONNECTION_DEAD;
        aster_connection_mark(connection);
        return;
    }
    connection->overdue = true;
    int code = ngtcp2_conn_handle_expiry(connection->conn, (ngtcp2_tstamp)now_ns);
    if (code != 0) {
        aster_connection_fail(connection, code);
        return;
    }
    aster_connection_mark(connection);
}

static void fill_settings(const struct aster_endpoint *endpoint, ngtcp2_settings *settings)
{
    ngtcp2_settings_default(settings);
    settings->initial_ts = aster_endpoint_now(endpoint);
    settings->initial_rtt = INITIAL_RTT_MS * NGTCP2_MILLISECONDS;
    settings->ack_thresh = 1; /* one packet each way per request instead of 1.5 */
    settings->max_tx_udp_payload_size = ASTER_UDP_PAYLOAD_MAX;
    settings->handshake_timeout =
        (ngtcp2_duration)endpoint->transport.options.handshake_timeout_ms * NGTCP2_MILLISECONDS;
}

static void fill_params(const struct aster_endpoint *endpoint, bool accepted, ngtcp2_transport_params *params)
{
    const struct aster_transport_options *options = &endpoint->transport.options;
    ngtcp2_transport_params_default(params);
    params->initial_max_stream_data_bidi_local = options->receive_window;
    params->initial_max_stream_data_bidi_remote = options->receive_window;
    params->initial_max_data = options->receive_window;
    params->initial_max_streams_bidi = accepted ? 1 : 0;
    params->max_idle_timeout = (ngtcp2_duration)options->idle_timeout_ms * NGTCP2_MILLISECONDS;
    params->max_ack_delay = MAX_ACK_DELAY_MS * NGTCP2_MILLISECONDS;
    params->active_connection_id_limit = 4;
}

static ngtcp2_path path_of(const struct aster_address *local, const struct aster_address *remote)
{
    /* The library copies; its types are not const. */
    return (ngtcp2_path){.local = {(ngtcp2_sockaddr *)(uintptr_t)&local->any, local->size},
                         .remote = {(ngtcp2_sockaddr *)(uintptr_t)&remote->any, remote->size}};
}

static void random_cid(ngtcp2_cid *cid, size_t size)
{
    cid->datalen = size;
    aster_quic_random(cid->data, size, NULL);
}

/* Memory, link and timer of a connection; no library state yet. */
static aster_status create(struct aster_endpoint *endpoint, bool accepted, const struct aster_address *remote,
                           struct aster_bytes expected, struct aster_connection **connection, struct aster_error *error)
{
    struct aster_timers *timers = aster_loop_timers(endpoint->transport.options.loop);
    aster_status status = aster_timers_reserve(timers, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_connection *made = calloc(1, sizeof *made);
    if (made == NULL) {
        aster_timers_unreserve(timers);
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a connection");
    }
    status = aster_link_init(&made->link, &endpoint->transport, &quic_link_ops, accepted, remote, expected, error);
    if (status != ASTER_OK) {
        aster_timers_unreserve(timers);
        free(made);
        return status;
    }
    made->endpoint = endpoint;
    made->own.fd = -1;
    made->stream_id = -1;
    made->phase = ASTER_CONNECTION_LIVE;
    made->timer.fire = fire;
    made->link.tls.ref = (ngtcp2_crypto_conn_ref){get_conn, made};
    *connection = made;
    return ASTER_OK;
}

void aster_connection_free(struct aster_connection *connection)
{
    struct aster_loop *loop = connection->endpoint->transport.options.loop;
    aster_timers_unset(aster_loop_timers(loop), &connection->timer);
    aster_timers_unreserve(aster_loop_timers(loop));
    ngtcp2_conn_del(connection->conn);
    aster_cid_table_clear(&connection->endpoint->cids, &connection->cids);
    if (connection->own.fd >= 0) {
        aster_loop_remove(loop, &connection->watch);
        aster_udp_close(&connection->own);
    }
    aster_link_fini(&connection->link);
    free(connection->farewell);
    free(connection);
}

/* TLS goes in after the library's state exists and before its first use. */
static aster_status start_tls(struct aster_connection *connection, int code, struct aster_error *error)
{
    if (code != 0) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "cannot make a QUIC connection: %s", ngtcp2_strerror(code));
    }
    aster_status status = aster_tls_peer_start(&connection->link.tls, ASTER_TLS_OVER_QUIC, error);
    if (status == ASTER_OK) {
        ngtcp2_conn_set_tls_native_handle(connection->conn, connection->link.tls.session);
    }
    return status;
}

/* Never opened: it leaves no trace in the counts but that of the handshake that began. */
static void abandon(struct aster_connection *connection)
{
    aster_link_withdraw(&connection->link);
    aster_connection_free(connection);
}

static aster_status start_server(struct aster_connection *connection, const struct aster_datagram *datagram,
                                 const ngtcp2_pkt_hd *header, const ngtcp2_cid *original, struct aster_error *error)
{
    struct aster_endpoint *endpoint = connection->endpoint;
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_cid scid;
    fill_settings(endpoint, &settings);
    fill_params(endpoint, true, &params);
    random_cid(&scid, ASTER_CID_SIZE);
    aster_quic_set_original(&params, original != NULL ? original : &header->dcid);
    if (original != NULL) {
        params.retry_scid = header->dcid;
        params.retry_scid_present = 1;
        aster_quic_set_token(&settings, header);
    }
    const struct aster_transport_options *options = &endpoint->transport.options;
    params.stateless_reset_token_present = 1;
    if (ngtcp2_crypto_generate_stateless_reset_token(params.stateless_reset_token, options->secret,
                                                     sizeof options->secret, &scid) != 0 ||
        aster_cid_table_add(&endpoint->cids, &header->dcid, connection, &connection->cids) != ASTER_OK ||
        aster_cid_table_add(&endpoint->cids, &scid, connection, &connection->cids) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for connection ids");
    }
    ngtcp2_path path = path_of(&datagram->local, &datagram->remote);
    int code = ngtcp2_conn_server_new(&connection->conn, &header->scid, &scid, &path, header->version,
                                      &aster_server_callbacks, &settings, &params, NULL, connection);
    return start_tls(connection, code, error);
}

aster_status aster_connection_accept(struct aster_endpoint *endpoint, struct aster_listener *listener,
                                     const struct aster_datagram *datagram, const ngtcp2_pkt_hd *header,
                                     const ngtcp2_cid *original, struct aster_connection **connection,
                                     struct aster_error *error)
{
    struct aster_connection *made;
    aster_status status = create(endpoint, true, &datagram->remote, (struct aster_bytes){NULL, 0}, &made, error);
    if (status != ASTER_OK) {
        return status;
    }
    made->udp = &listener->udp;
    made->local = datagram->local;
    status = start_server(made, datagram, header, original, error);
    if (status != ASTER_OK) {
        abandon(made);
        return status;
    }
    *connection = made;
    return ASTER_OK;
}

/* "Port unreachable" can be forged by whoever guesses both ports, so one alone proves nothing once the link is open. */
#define REFUSALS_MEAN_GONE 3

static void note_refusal(struct aster_connection *connection)
{
    connection->refusals++;
    if (connection->phase != ASTER_CONNECTION_LIVE) {
        return;
    }
    if (connection->link.state == ASTER_LINK_HANDSHAKING || connection->refusals >= REFUSALS_MEAN_GONE) {
        aster_connection_vanish(connection, ASTER_LINK_END_UNREACHABLE, "nobody listens there: is the server running?");
    }
}

static void handle_own(const struct aster_datagram *datagram, void *user)
{
    struct aster_connection *connection = user;
    connection->refusals = 0;
    aster_connection_read(connection, datagram);
}

static void own_ready(struct aster_watch *watch, uint32_t events)
{
    (void)events;
    struct aster_connection *connection =
        (struct aster_connection *)((char *)watch - offsetof(struct aster_connection, watch));
    int count = aster_udp_receive(&connection->own, connection->endpoint->inbox, handle_own, connection);
    if (count < 0) {
        note_refusal(connection);
    }
}

static aster_status start_client(struct aster_connection *connection, struct aster_error *error)
{
    struct aster_endpoint *endpoint = connection->endpoint;
    aster_status status = aster_udp_connect(&connection->link.remote, &connection->own, error);
    if (status != ASTER_OK) {
        return status;
    }
    connection->udp = &connection->own;
    connection->local = connection->own.local;
    connection->watch = (struct aster_watch){own_ready, connection->own.fd};
    status = aster_loop_add(endpoint->transport.options.loop, &connection->watch, EPOLLIN, error);
    if (status != ASTER_OK) {
        return status;
    }
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    ngtcp2_cid dcid;
    ngtcp2_cid scid;
    fill_settings(endpoint, &settings);
    fill_params(endpoint, false, &params);
    random_cid(&dcid, ASTER_CID_SIZE);
    random_cid(&scid, ASTER_CID_SIZE);
    ngtcp2_path path = path_of(&connection->local, &connection->link.remote);
    int code = ngtcp2_conn_client_new(&connection->conn, &dcid, &scid, &path, NGTCP2_PROTO_VER_V1,
                                      &aster_client_callbacks, &settings, &params, NULL, connection);
    return start_tls(connection, code, error);
}

aster_status aster_connection_connect(struct aster_endpoint *endpoint, const struct aster_address *remote,
                                      struct aster_bytes expected, void *user, struct aster_connection **connection,
                                      struct aster_error *error)
{
    struct aster_connection *made;
    aster_status status = create(endpoint, false, remote, expected, &made, error);
    if (status != ASTER_OK) {
        return status;
    }
    made->link.user = user;
    status = start_client(made, error);
    if (status != ASTER_OK) {
        abandon(made);
        return status;
    }
    aster_connection_mark(made);
    *connection = made;
    return ASTER_OK;
}

void aster_connection_read(struct aster_connection *connection, const struct aster_datagram *datagram)
{
    if (connection->phase == ASTER_CONNECTION_CLOSING) {
        aster_connection_answer_late(connection);
    }
    if (connection->phase != ASTER_CONNECTION_LIVE) {
        return;
    }
    ngtcp2_path path = path_of(&datagram->local, &datagram->remote);
    const ngtcp2_pkt_info info = {.ecn = datagram->ecn};
    int code = ngtcp2_conn_read_pkt(connection->conn, &path, &info, datagram->data, datagram->size,
                                    aster_endpoint_now(connection->endpoint));
    if (code == 0) {
        aster_connection_mark(connection);
    } else if (code == NGTCP2_ERR_DRAINING) {
        aster_connection_drain(connection);
    } else if (code != NGTCP2_ERR_CLOSING) {
        aster_connection_fail(connection, code);
    }
}

/* Where the library wants the next packet to go; it changes when a peer's address does. */
static void follow_path(struct aster_connection *connection, const ngtcp2_path *path)
{
    memcpy(&connection->link.remote.storage, path->remote.addr, path->remote.addrlen);
    connection->link.remote.size = path->remote.addrlen;
    memcpy(&connection->local.storage, path->local.addr, path->local.addrlen);
    connection->local.size = path->local.addrlen;
}

static void give_credit(struct aster_connection *connection)
{
    struct aster_link *link = &connection->link;
    if (link->uncredited > 0 && !link->throttled && connection->stream_id >= 0) {
        ngtcp2_conn_extend_max_stream_offset(connection->conn, connection->stream_id, link->uncredited);
        ngtcp2_conn_extend_max_offset(connection->conn, link->uncredited);
        link->uncredited = 0;
    }
}

/* One packet. Returns its size, 0 when there is nothing to send now, or the library's error. */
static ngtcp2_ssize write_packet(struct aster_connection *connection, ngtcp2_path_storage *path, ngtcp2_pkt_info *info,
                                 unsigned char *room, bool *blocked)
{
    struct aster_send_queue *out = &connection->link.out;
    struct iovec pieces[PIECES];
    ngtcp2_vec vectors[PIECES];
    size_t count = connection->stream_id >= 0 && !*blocked ? aster_send_queue_unsent(out, pieces, PIECES) : 0;
    for (size_t i = 0; i < count; i++) {
        vectors[i] = (ngtcp2_vec){pieces[i].iov_base, pieces[i].iov_len};
    }
    ngtcp2_ssize taken = -1;
    ngtcp2_ssize size = ngtcp2_conn_writev_stream(
        connection->conn, &path->path, info, room, ASTER_UDP_PAYLOAD_MAX, &taken, NGTCP2_WRITE_STREAM_FLAG_NONE,
        count > 0 ? connection->stream_id : -1, vectors, count, aster_endpoint_now(connection->endpoint));
    if (taken > 0) {
        aster_send_queue_mark_sent(out, (size_t)taken);
    }
    if (size == NGTCP2_ERR_STREAM_DATA_BLOCKED || size == NGTCP2_ERR_STREAM_SHUT_WR ||
        size == NGTCP2_ERR_STREAM_NOT_FOUND) {
        *blocked = true; /* other frames may still go */
        return write_packet(connection, path, info, room, blocked);
    }
    return size;
}

static bool write_packets(struct aster_connection *connection)
{
    struct aster_udp_outbox *outbox = connection->endpoint->outbox;
    ngtcp2_path_storage path;
    ngtcp2_pkt_info info;
    bool blocked = false;
    ngtcp2_path_storage_zero(&path);
    for (;;) {
        unsigned char *room = aster_udp_outbox_reserve(outbox);
        ngtcp2_ssize size = write_packet(connection, &path, &info, room, &blocked);
        if (size < 0) {
            aster_connection_fail(connection, (int)size);
            return false;
        }
        if (size == 0) {
            return true;
        }
        follow_path(connection, &path.path);
        aster_udp_outbox_add(outbox, connection->udp, &connection->local, &connection->link.remote, (uint8_t)info.ecn,
                             (size_t)size);
    }
}

static enum aster_close_code code_of_end(enum aster_link_end end)
{
    switch (end) {
    case ASTER_LINK_END_REFUSED:
        return ASTER_CLOSE_REFUSED;
    case ASTER_LINK_END_OVERLOAD:
        return ASTER_CLOSE_OVERLOAD;
    case ASTER_LINK_END_PROTOCOL:
        return ASTER_CLOSE_PROTOCOL;
    default:
        return ASTER_CLOSE_DONE;
    }
}

/* The acknowledgement of one lone packet travels with the answer to it, if that comes soon: otherwise a request whose
 * answer waits for a disk costs three packets instead of two. A second packet is not held, so bulk flows as ever. */
static bool holds_back(struct aster_connection *connection)
{
    struct aster_link *link = &connection->link;
    struct aster_timers *timers = aster_loop_timers(connection->endpoint->transport.options.loop);
    if (connection->unheard != 1 || connection->overdue || link->state != ASTER_LINK_OPEN || link->stopping ||
        link->out.unsent > 0) {
        return false;
    }
    int64_t until_ns = aster_loop_now_ns(connection->endpoint->transport.options.loop) + HOLD_NS;
    if (connection->timer.slot == 0 || connection->timer.at_ns > until_ns) {
        aster_timers_set(timers, &connection->timer, until_ns);
    }
    return true;
}

void aster_connection_write(struct aster_connection *connection)
{
    struct aster_link *link = &connection->link;
    if (connection->phase != ASTER_CONNECTION_LIVE || holds_back(connection)) {
        return;
    }
    connection->unheard = 0;
    connection->overdue = false;
    give_credit(connection);
    if (!write_packets(connection)) {
        return;
    }
    if (link->stopping) {
        aster_quic_close close;
        const char *reason = link->reason != NULL ? link->reason : "";
        aster_quic_close_application(&close, code_of_end(link->end), (const uint8_t *)reason, strlen(reason));
        aster_connection_close(connection, &close, link->end, &link->error);
        return;
    }
    struct aster_timers *timers = aster_loop_timers(connection->endpoint->transport.options.loop);
    ngtcp2_tstamp expiry = ngtcp2_conn_get_expiry(connection->conn);
    if (expiry > INT64_MAX) {
        aster_timers_unset(timers, &connection->timer);
    } else {
        aster_timers_set(timers, &connection->timer, (int64_t)expiry);
    }
}
