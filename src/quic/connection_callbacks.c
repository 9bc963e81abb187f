#include <gnutls/crypto.h>

#include "base/error.h"
#include "quic/connection.h"

void aster_quic_random(uint8_t *data, size_t size, const ngtcp2_rand_ctx *context)
{
    (void)context;
    gnutls_rnd(GNUTLS_RND_NONCE, data, size);
}

static int get_new_connection_id(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t size, void *user)
{
    (void)conn;
    struct aster_connection *connection = user;
    const struct aster_transport_options *options = &connection->endpoint->transport.options;
    if (gnutls_rnd(GNUTLS_RND_NONCE, cid->data, size) < 0) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    cid->datalen = size;
    if (ngtcp2_crypto_generate_stateless_reset_token(token, options->secret, sizeof options->secret, cid) != 0 ||
        aster_cid_table_add(&connection->endpoint->cids, cid, connection, &connection->cids) != ASTER_OK) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    return 0;
}

static int remove_connection_id(ngtcp2_conn *conn, const ngtcp2_cid *cid, void *user)
{
    (void)conn;
    struct aster_connection *connection = user;
    aster_cid_table_remove(&connection->endpoint->cids, cid, &connection->cids);
    return 0;
}

static int handshake_completed(ngtcp2_conn *conn, void *user)
{
    (void)conn;
    struct aster_connection *connection = user;
    struct aster_link *link = &connection->link;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_tls_peer_bind(&link->tls, &error);
    if (status != ASTER_OK) {
        bool refused = link->tls.refused;
        aster_link_stop(link, refused ? ASTER_LINK_END_REFUSED : ASTER_LINK_END_PROTOCOL,
                        refused ? "not admitted" : "protocol", &error);
    } else if (link->accepted) {
        aster_link_opened(link);
    }
    return 0;
}

/* Only now has the server judged our certificate: a request that was sent earlier might be thrown away with it. */
static int handshake_confirmed(ngtcp2_conn *conn, void *user)
{
    struct aster_connection *connection = user;
    struct aster_link *link = &connection->link;
    if (link->accepted || link->stopping || link->state != ASTER_LINK_HANDSHAKING) {
        return 0;
    }
    ngtcp2_conn_set_keep_alive_timeout(conn,
                                       (ngtcp2_duration)link->transport->options.keep_alive_ms * NGTCP2_MILLISECONDS);
    if (ngtcp2_conn_open_bidi_stream(conn, &connection->stream_id, NULL) != 0) {
        struct aster_error error;
        aster_error_set(&error, ASTER_ERR_VERSION, "the server allows no stream: it does not speak %s", ASTER_ALPN);
        connection->stream_id = -1;
        aster_link_stop(link, ASTER_LINK_END_PROTOCOL, "no stream", &error);
        return 0;
    }
    aster_link_opened(link);
    return 0;
}

static int stream_open(ngtcp2_conn *conn, int64_t stream_id, void *user)
{
    (void)conn;
    struct aster_connection *connection = user;
    if (connection->stream_id < 0) {
        connection->stream_id = stream_id;
    }
    return 0;
}

static void end_by_peer(struct aster_connection *connection)
{
    struct aster_error error;
    aster_error_set(&error, ASTER_ERR_CLOSED, "the peer ended the stream");
    aster_link_stop(&connection->link, ASTER_LINK_END_PEER, "stream ended", &error);
}

static int recv_stream_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream_id, uint64_t offset, const uint8_t *data,
                            size_t size, void *user, void *stream_user)
{
    (void)offset;
    (void)stream_user;
    struct aster_connection *connection = user;
    connection->unheard++;
    if (size > 0) {
        size_t credit = aster_link_received(&connection->link, (struct aster_bytes){data, size});
        if (ngtcp2_conn_extend_max_stream_offset(conn, stream_id, credit) != 0) {
            return NGTCP2_ERR_CALLBACK_FAILURE;
        }
        ngtcp2_conn_extend_max_offset(conn, credit);
    }
    if (flags & NGTCP2_STREAM_DATA_FLAG_FIN) {
        end_by_peer(connection);
    }
    return 0;
}

static int acked_stream_data_offset(ngtcp2_conn *conn, int64_t stream_id, uint64_t offset, uint64_t size, void *user,
                                    void *stream_user)
{
    (void)conn;
    (void)stream_id;
    (void)offset;
    (void)stream_user;
    struct aster_connection *connection = user;
    aster_link_sent(&connection->link, (size_t)size);
    return 0;
}

static int stream_reset(ngtcp2_conn *conn, int64_t stream_id, uint64_t final_size, uint64_t code, void *user,
                        void *stream_user)
{
    (void)conn;
    (void)stream_id;
    (void)final_size;
    (void)code;
    (void)stream_user;
    end_by_peer(user);
    return 0;
}

static int stream_stop_sending(ngtcp2_conn *conn, int64_t stream_id, uint64_t code, void *user, void *stream_user)
{
    return stream_reset(conn, stream_id, 0, code, user, stream_user);
}

static int recv_stateless_reset(ngtcp2_conn *conn, const ngtcp2_pkt_stateless_reset *reset, void *user)
{
    (void)conn;
    (void)reset;
    struct aster_connection *connection = user;
    connection->forgotten = true;
    return 0;
}

#define COMMON_CALLBACKS                                                                                               \
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .handshake_completed = handshake_completed,                 \
    .encrypt = ngtcp2_crypto_encrypt_cb, .decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb,     \
    .recv_stream_data = recv_stream_data, .acked_stream_data_offset = acked_stream_data_offset,                        \
    .stream_open = stream_open, .stream_reset = stream_reset, .stream_stop_sending = stream_stop_sending,              \
    .recv_stateless_reset = recv_stateless_reset, .rand = aster_quic_random,                                           \
    .get_new_connection_id = get_new_connection_id, .remove_connection_id = remove_connection_id,                      \
    .update_key = ngtcp2_crypto_update_key_cb, .handshake_confirmed = handshake_confirmed,                             \
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,                                                 \
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,                                             \
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,                                               \
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb

const ngtcp2_callbacks aster_server_callbacks = {
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    COMMON_CALLBACKS,
};

const ngtcp2_callbacks aster_client_callbacks = {
    .client_initial = ngtcp2_crypto_client_initial_cb,
    .recv_retry = ngtcp2_crypto_recv_retry_cb,
    COMMON_CALLBACKS,
};
