/* The ways in which a connection ends. */
#include <stdlib.h>

#include "base/error.h"
#include "quic/connection.h"

#define ALERT_NO_APPLICATION_PROTOCOL 120

/* TLS alerts about the certificate that we showed: bad_certificate .. access_denied, certificate_required. */
static bool alert_about_certificate(uint64_t alert)
{
    return (alert >= 42 && alert <= 49) || alert == 116;
}

static void stop_session(struct aster_connection *connection)
{
    ngtcp2_conn_del(connection->conn);
    connection->conn = NULL;
    aster_tls_peer_stop(&connection->link.tls);
}

static void set_timer(struct aster_connection *connection, ngtcp2_duration after)
{
    int64_t now = aster_loop_now_ns(connection->endpoint->transport.options.loop);
    aster_timers_set(aster_loop_timers(connection->endpoint->transport.options.loop), &connection->timer,
                     now + (int64_t)after);
}

void aster_connection_vanish(struct aster_connection *connection, enum aster_link_end end, const char *message)
{
    struct aster_error error;
    char text[ASTER_ADDRESS_TEXT_MAX];
    aster_error_set(&error, ASTER_ERR_UNREACHABLE, "%s: %s", aster_address_text(&connection->link.remote, text),
                    message);
    connection->phase = ASTER_CONNECTION_DEAD;
    aster_connection_mark(connection);
    aster_link_finish(&connection->link, end, &error);
}

/* Closing and draining take three probe timeouts, so that late packets are not taken for those of a stranger. The
 * library's state is not needed for that. */
void aster_connection_close(struct aster_connection *connection, const aster_quic_close *reason,
                            enum aster_link_end end, const struct aster_error *error)
{
    struct aster_endpoint *endpoint = connection->endpoint;
    unsigned char *room = aster_udp_outbox_reserve(endpoint->outbox);
    ngtcp2_path_storage path;
    ngtcp2_pkt_info info;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_ssize size = ngtcp2_conn_write_connection_close(connection->conn, &path.path, &info, room,
                                                           ASTER_UDP_PAYLOAD_MAX, reason, aster_endpoint_now(endpoint));
    connection->phase = ASTER_CONNECTION_DEAD;
    if (size > 0) {
        connection->farewell = aster_link_linger(&connection->link) ? malloc((size_t)size) : NULL;
        if (connection->farewell != NULL) {
            memcpy(connection->farewell, room, (size_t)size);
            connection->farewell_size = (size_t)size;
            connection->phase = ASTER_CONNECTION_CLOSING;
            set_timer(connection, 3 * ngtcp2_conn_get_pto(connection->conn));
        }
        aster_udp_outbox_add(endpoint->outbox, connection->udp, &connection->local, &connection->link.remote, 0,
                             (size_t)size);
    }
    stop_session(connection);
    aster_connection_mark(connection);
    aster_link_finish(&connection->link, end, error);
}

void aster_connection_answer_late(struct aster_connection *connection)
{
    /* The 1st, 2nd, 4th, 8th, ... packet: two sides that both are closing must not keep each other busy. */
    unsigned late = ++connection->late;
    if ((late & (late - 1)) == 0) {
        struct aster_udp_outbox *outbox = connection->endpoint->outbox;
        memcpy(aster_udp_outbox_reserve(outbox), connection->farewell, connection->farewell_size);
        aster_udp_outbox_add(outbox, connection->udp, &connection->local, &connection->link.remote, 0,
                             connection->farewell_size);
    }
}

static enum aster_link_end end_of_application_code(uint64_t code)
{
    switch (code) {
    case ASTER_CLOSE_DONE:
        return ASTER_LINK_END_PEER;
    case ASTER_CLOSE_REFUSED:
        return ASTER_LINK_END_REFUSED;
    case ASTER_CLOSE_OVERLOAD:
        return ASTER_LINK_END_OVERLOAD;
    default:
        return ASTER_LINK_END_PROTOCOL;
    }
}

static enum aster_link_end end_of_transport_code(uint64_t code)
{
    if (code == NGTCP2_CONNECTION_REFUSED) {
        return ASTER_LINK_END_OVERLOAD;
    }
    if (code == NGTCP2_NO_ERROR) {
        return ASTER_LINK_END_PEER;
    }
    bool alert = code >= NGTCP2_CRYPTO_ERROR && code <= NGTCP2_CRYPTO_ERROR + 255;
    return alert && alert_about_certificate(code - NGTCP2_CRYPTO_ERROR) ? ASTER_LINK_END_REFUSED
                                                                        : ASTER_LINK_END_PROTOCOL;
}

static void describe_close(const aster_quic_close *close, enum aster_link_end end, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    struct aster_bytes reason = {close->reason, close->reasonlen};
    switch (end) {
    case ASTER_LINK_END_PEER:
        aster_error_set(error, ASTER_ERR_CLOSED, "the peer closed the connection: %s", aster_printable(reason, shown));
        break;
    case ASTER_LINK_END_REFUSED:
        aster_error_set(error, ASTER_ERR_INVALID, "the peer does not admit this node: have its id added there");
        break;
    case ASTER_LINK_END_OVERLOAD:
        aster_error_set(error, ASTER_ERR_UNREACHABLE, "the peer has no room for another connection: try again later");
        break;
    default:
        aster_error_set(error, ASTER_ERR_VERSION, "the peer closed the connection with error 0x%llx: %s",
                        (unsigned long long)close->error_code, aster_printable(reason, shown));
    }
}

void aster_connection_drain(struct aster_connection *connection)
{
    if (connection->forgotten) {
        stop_session(connection);
        aster_connection_vanish(connection, ASTER_LINK_END_FORGOTTEN,
                                "the peer does not know this connection: it was restarted");
        return;
    }
    aster_quic_close close;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_quic_close_received(connection->conn, &close);
    enum aster_link_end end = ASTER_QUIC_CLOSE_IS_APPLICATION(&close) ? end_of_application_code(close.error_code)
                                                                      : end_of_transport_code(close.error_code);
    describe_close(&close, end, &error);
    connection->phase = ASTER_CONNECTION_DEAD;
    if (aster_link_linger(&connection->link)) {
        connection->phase = ASTER_CONNECTION_DRAINING;
        set_timer(connection, 3 * ngtcp2_conn_get_pto(connection->conn));
    }
    stop_session(connection); /* `close` may borrow from it: described above */
    aster_connection_mark(connection);
    aster_link_finish(&connection->link, end, &error);
}

void aster_connection_evict(struct aster_link *link, const struct aster_error *error)
{
    aster_quic_close close;
    aster_quic_close_transport(&close, NGTCP2_CONNECTION_REFUSED, NULL, 0);
    aster_connection_close(aster_connection_of(link), &close, ASTER_LINK_END_OVERLOAD, error);
}

static void fail_in_handshake(struct aster_connection *connection)
{
    const struct aster_tls_peer *tls = &connection->link.tls;
    uint8_t alert = ngtcp2_conn_get_tls_alert(connection->conn);
    aster_quic_close close;
    struct aster_error error = tls->error;
    aster_quic_close_alert(&close, alert, NULL, 0);
    enum aster_link_end end =
        tls->refused || alert_about_certificate(alert) ? ASTER_LINK_END_REFUSED : ASTER_LINK_END_PROTOCOL;
    if (!tls->refused && alert == ALERT_NO_APPLICATION_PROTOCOL) {
        aster_error_set(&error, ASTER_ERR_VERSION, "the TLS handshake failed: the peer does not speak " ASTER_ALPN);
    } else if (!tls->refused) {
        aster_error_set(
            &error, ASTER_ERR_INVALID,
            "the TLS handshake failed with alert %u: the peer showed no acceptable certificate, or speaks no TLS 1.3",
            (unsigned)alert);
    }
    aster_connection_close(connection, &close, end, &error);
}

void aster_connection_fail(struct aster_connection *connection, int code)
{
    struct aster_error error;
    aster_quic_close close;
    switch (code) {
    case NGTCP2_ERR_IDLE_CLOSE:
    case NGTCP2_ERR_HANDSHAKE_TIMEOUT:
    case NGTCP2_ERR_DROP_CONN:
        stop_session(connection);
        aster_connection_vanish(connection, ASTER_LINK_END_UNREACHABLE,
                                connection->link.state == ASTER_LINK_OPEN ? "nothing was heard for the idle timeout"
                                                                          : "no answer within the handshake timeout");
        return;
    case NGTCP2_ERR_CRYPTO:
        fail_in_handshake(connection);
        return;
    default:
        aster_quic_close_library(&close, code, NULL, 0);
        aster_error_set(&error, code == NGTCP2_ERR_NOMEM ? ASTER_ERR_NOMEM : ASTER_ERR_VERSION,
                        "the connection broke: %s", ngtcp2_strerror(code));
        aster_connection_close(connection, &close, ASTER_LINK_END_PROTOCOL, &error);
    }
}
