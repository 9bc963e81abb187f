/* Datagrams that belong to no connection: the only ones that a stranger can make this process work for. */
#include <gnutls/crypto.h>

#include "base/error.h"
#include "quic/connection.h"

#define RETRY_TOKEN_LIFETIME (10 * NGTCP2_SECONDS)
#define RESETS_PER_SECOND 1000
#define RESET_MIN_SIZE 22 /* keep-alive packets are that short; the answer must be shorter than its cause */
#define INITIAL_MIN_SIZE 1200

static void answer(struct aster_endpoint *endpoint, struct aster_listener *listener,
                   const struct aster_datagram *datagram, ngtcp2_ssize size)
{
    if (size > 0) {
        aster_udp_outbox_add(endpoint->outbox, &listener->udp, &datagram->local, &datagram->remote, 0, (size_t)size);
    }
}

static void refuse(struct aster_endpoint *endpoint, struct aster_listener *listener,
                   const struct aster_datagram *datagram, const ngtcp2_pkt_hd *header, uint64_t code)
{
    unsigned char *room = aster_udp_outbox_reserve(endpoint->outbox);
    answer(endpoint, listener, datagram,
           ngtcp2_crypto_write_connection_close(room, ASTER_UDP_PAYLOAD_MAX, header->version, &header->scid,
                                                &header->dcid, code, NULL, 0));
}

static void ask_for_proof(struct aster_endpoint *endpoint, struct aster_listener *listener,
                          const struct aster_datagram *datagram, const ngtcp2_pkt_hd *header)
{
    const struct aster_transport_options *options = &endpoint->transport.options;
    ngtcp2_cid scid;
    uint8_t token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
    scid.datalen = ASTER_CID_SIZE;
    aster_quic_random(scid.data, scid.datalen, NULL);
    ngtcp2_ssize token_size = ngtcp2_crypto_generate_retry_token(
        token, options->secret, sizeof options->secret, header->version, &datagram->remote.any, datagram->remote.size,
        &scid, &header->dcid, aster_endpoint_now(endpoint));
    if (token_size < 0) {
        return;
    }
    endpoint->transport.counts.retries++;
    unsigned char *room = aster_udp_outbox_reserve(endpoint->outbox);
    answer(endpoint, listener, datagram,
           ngtcp2_crypto_write_retry(room, ASTER_UDP_PAYLOAD_MAX, header->version, &header->scid, &scid, &header->dcid,
                                     token, (size_t)token_size));
}

enum proof { PROOF_NONE, PROOF_GOOD, PROOF_BAD };

static enum proof check_proof(const struct aster_endpoint *endpoint, const struct aster_datagram *datagram,
                              const ngtcp2_pkt_hd *header, ngtcp2_cid *original)
{
    const struct aster_transport_options *options = &endpoint->transport.options;
    struct aster_bytes token = aster_quic_token(header);
    if (token.size == 0 || *(const uint8_t *)token.data != NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY) {
        return PROOF_NONE; /* we give no other tokens */
    }
    return ngtcp2_crypto_verify_retry_token(original, token.data, token.size, options->secret, sizeof options->secret,
                                            header->version, &datagram->remote.any, datagram->remote.size,
                                            &header->dcid, RETRY_TOKEN_LIFETIME, aster_endpoint_now(endpoint)) == 0
               ? PROOF_GOOD
               : PROOF_BAD;
}

void aster_endpoint_accept(struct aster_endpoint *endpoint, struct aster_listener *listener,
                           const struct aster_datagram *datagram)
{
    const struct aster_transport_options *options = &endpoint->transport.options;
    struct aster_transport_counts *counts = &endpoint->transport.counts;
    ngtcp2_pkt_hd header;
    ngtcp2_cid original;
    int code = ngtcp2_accept(&header, datagram->data, datagram->size);
    if (code != 0 && code != NGTCP2_ERR_RETRY) {
        counts->ignored++;
        return;
    }
    enum proof proof = check_proof(endpoint, datagram, &header, &original);
    if (proof == PROOF_BAD) {
        refuse(endpoint, listener, datagram, &header, NGTCP2_INVALID_TOKEN);
        return;
    }
    if (proof == PROOF_NONE && (code == NGTCP2_ERR_RETRY || counts->handshakes >= options->retry_above)) {
        ask_for_proof(endpoint, listener, datagram, &header);
        return;
    }
    if (counts->connections >= options->connections_max) {
        refuse(endpoint, listener, datagram, &header, NGTCP2_CONNECTION_REFUSED);
        return;
    }
    struct aster_connection *connection;
    aster_link_make_room(&endpoint->transport);
    if (aster_connection_accept(endpoint, listener, datagram, &header, proof == PROOF_GOOD ? &original : NULL,
                                &connection, NULL) == ASTER_OK) {
        aster_connection_read(connection, datagram);
    } else {
        refuse(endpoint, listener, datagram, &header, NGTCP2_CONNECTION_REFUSED);
    }
}

static bool may_reset(struct aster_endpoint *endpoint)
{
    int64_t now = aster_loop_now_ns(endpoint->transport.options.loop);
    if (now - endpoint->resets_from_ns >= (int64_t)NGTCP2_SECONDS) {
        endpoint->resets_from_ns = now;
        endpoint->resets_left = RESETS_PER_SECOND;
    }
    if (endpoint->resets_left == 0) {
        return false;
    }
    endpoint->resets_left--;
    return true;
}

void aster_endpoint_reset(struct aster_endpoint *endpoint, struct aster_listener *listener,
                          const struct aster_datagram *datagram, const uint8_t *cid_data)
{
    const struct aster_transport_options *options = &endpoint->transport.options;
    uint8_t token[NGTCP2_STATELESS_RESET_TOKENLEN];
    uint8_t noise[32];
    ngtcp2_cid cid;
    if (datagram->size < RESET_MIN_SIZE || !may_reset(endpoint)) {
        endpoint->transport.counts.ignored++;
        return;
    }
    ngtcp2_cid_init(&cid, cid_data, ASTER_CID_SIZE);
    size_t noise_size = datagram->size - 1 - sizeof token;
    noise_size = noise_size < sizeof noise ? noise_size : sizeof noise;
    aster_quic_random(noise, noise_size, NULL);
    if (ngtcp2_crypto_generate_stateless_reset_token(token, options->secret, sizeof options->secret, &cid) != 0) {
        return;
    }
    endpoint->transport.counts.resets++;
    unsigned char *room = aster_udp_outbox_reserve(endpoint->outbox);
    answer(endpoint, listener, datagram,
           ngtcp2_pkt_write_stateless_reset(room, ASTER_UDP_PAYLOAD_MAX, token, noise, noise_size));
}

void aster_endpoint_offer_version(struct aster_endpoint *endpoint, struct aster_listener *listener,
                                  const struct aster_datagram *datagram, const ngtcp2_version_cid *ids)
{
    static const uint32_t versions[] = {NGTCP2_PROTO_VER_V1};
    uint8_t noise;
    if (datagram->size < INITIAL_MIN_SIZE) {
        endpoint->transport.counts.ignored++;
        return;
    }
    aster_quic_random(&noise, 1, NULL);
    unsigned char *room = aster_udp_outbox_reserve(endpoint->outbox);
    answer(endpoint, listener, datagram,
           ngtcp2_pkt_write_version_negotiation(room, ASTER_UDP_PAYLOAD_MAX, noise, ids->scid, ids->scidlen, ids->dcid,
                                                ids->dcidlen, versions, sizeof versions / sizeof versions[0]));
}
