#include "quic/tls.h"

#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include "base/error.h"

/* AES-128 first: ChaCha20 costs 1.35 to 3.3 times as much on machines with AES instructions. */
#define CIPHERS "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1"
#define PRIORITY_TCP "NORMAL:-VERS-ALL:+VERS-TLS1.3:" CIPHERS
#define PRIORITY_QUIC "%DISABLE_TLS13_COMPAT_MODE:" PRIORITY_TCP

aster_status aster_tls_peer_init(struct aster_tls_peer *peer, struct aster_credentials *credentials, bool accepted,
                                 struct aster_bytes expected, bool (*admit)(struct aster_bytes identity, void *user),
                                 void *admit_user, struct aster_error *error)
{
    memset(peer, 0, sizeof *peer);
    if (expected.size > ASTER_IDENTITY_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the expected identity is %zu bytes long, the limit is %d",
                               expected.size, ASTER_IDENTITY_MAX);
    }
    if (expected.size > 0) {
        memcpy(peer->expected.text, expected.data, expected.size);
        peer->expected.size = expected.size;
    }
    peer->credentials = aster_credentials_ref(credentials);
    peer->accepted = accepted;
    peer->admit = admit;
    peer->admit_user = admit_user;
    return ASTER_OK;
}

static aster_status judge(struct aster_tls_peer *peer, struct aster_identity *identity, struct aster_error *error)
{
    aster_status status = aster_identity_of_peer(peer->session, aster_credentials_trust(peer->credentials),
                                                 peer->accepted, identity, error);
    if (status != ASTER_OK) {
        return status;
    }
    char shown[ASTER_PRINTABLE_MAX];
    struct aster_bytes bytes = aster_identity_bytes(identity);
    if (peer->expected.size > 0 && !aster_bytes_equal(bytes, aster_identity_bytes(&peer->expected))) {
        char wanted[ASTER_PRINTABLE_MAX];
        return aster_error_set(
            error, ASTER_ERR_INVALID, "the server is %s, expected was %s: check the address and the configuration",
            aster_printable(bytes, shown), aster_printable(aster_identity_bytes(&peer->expected), wanted));
    }
    if (!peer->admit(bytes, peer->admit_user)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s is not admitted: add it with `aster node add` if it should be",
                               aster_printable(bytes, shown));
    }
    return ASTER_OK;
}

/* GnuTLS asks before the peer has proved that it has the key (CertificateVerify): refusing here is right, believing is
 * not. */
static int verify(gnutls_session_t session)
{
    struct aster_tls_peer *peer = gnutls_session_get_ptr(session);
    aster_status status = judge(peer, &peer->seen, &peer->error);
    peer->refused = status != ASTER_OK;
    return peer->refused ? GNUTLS_E_CERTIFICATE_ERROR : 0;
}

aster_status aster_tls_peer_bind(struct aster_tls_peer *peer, struct aster_error *error)
{
    gnutls_datum_t protocol = {NULL, 0};
    if (gnutls_alpn_get_selected_protocol(peer->session, &protocol) != 0 ||
        !aster_bytes_equal((struct aster_bytes){protocol.data, protocol.size}, aster_text(ASTER_ALPN))) {
        return aster_error_set(error, ASTER_ERR_VERSION, "the peer does not speak %s: update the older side",
                               ASTER_ALPN);
    }
    struct aster_identity identity;
    aster_status status = judge(peer, &identity, error);
    if (status != ASTER_OK) {
        peer->refused = true;
        return status;
    }
    peer->identity = identity;
    return ASTER_OK;
}

aster_status aster_tls_peer_judge_again(struct aster_tls_peer *peer, struct aster_credentials *credentials,
                                        struct aster_error *error)
{
    struct aster_identity identity;
    int code = gnutls_credentials_set(peer->session, GNUTLS_CRD_CERTIFICATE, aster_credentials_native(credentials));
    if (code < 0) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "cannot judge a peer again (%s)", gnutls_strerror(code));
    }
    struct aster_credentials *old = peer->credentials;
    peer->credentials = aster_credentials_ref(credentials);
    aster_credentials_unref(old);
    aster_status status = judge(peer, &identity, error);
    if (status == ASTER_OK &&
        !aster_bytes_equal(aster_identity_bytes(&identity), aster_identity_bytes(&peer->identity))) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "the peer's certificate now names another identity");
    }
    return status;
}

static int configure(struct aster_tls_peer *peer, enum aster_tls_carrier carrier)
{
    gnutls_session_t session = peer->session;
    int code = gnutls_priority_set_direct(session, carrier == ASTER_TLS_OVER_QUIC ? PRIORITY_QUIC : PRIORITY_TCP, NULL);
    if (code < 0) {
        return code;
    }
    code = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, aster_credentials_native(peer->credentials));
    if (code < 0) {
        return code;
    }
    const gnutls_datum_t protocol = {(unsigned char *)(uintptr_t)ASTER_ALPN, sizeof ASTER_ALPN - 1};
    code = gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY);
    if (code < 0) {
        return code;
    }
    gnutls_session_set_ptr(session, peer);
    gnutls_session_set_verify_function(session, verify);
    if (peer->accepted) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    }
    if (carrier != ASTER_TLS_OVER_QUIC) {
        return 0;
    }
    return peer->accepted ? ngtcp2_crypto_gnutls_configure_server_session(session)
                          : ngtcp2_crypto_gnutls_configure_client_session(session);
}

aster_status aster_tls_peer_start(struct aster_tls_peer *peer, enum aster_tls_carrier carrier,
                                  struct aster_error *error)
{
    /* A ticket would carry an identity past a revocation, and early data could be replayed. */
    unsigned flags = GNUTLS_NO_TICKETS | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL;
    flags |= peer->accepted ? GNUTLS_SERVER : GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT;
    int code = gnutls_init(&peer->session, flags);
    if (code < 0) {
        peer->session = NULL;
        return aster_error_set(error, ASTER_ERR_NOMEM, "cannot make a TLS session (%s)", gnutls_strerror(code));
    }
    code = configure(peer, carrier);
    if (code < 0) {
        aster_tls_peer_stop(peer);
        return aster_error_set(error, ASTER_ERR_IO,
                               "cannot configure TLS 1.3 (%s): is a system-wide policy in the way?",
                               gnutls_strerror(code));
    }
    return ASTER_OK;
}

void aster_tls_peer_stop(struct aster_tls_peer *peer)
{
    if (peer->session != NULL) {
        gnutls_deinit(peer->session);
        peer->session = NULL;
    }
}

void aster_tls_peer_fini(struct aster_tls_peer *peer)
{
    aster_tls_peer_stop(peer);
    aster_credentials_unref(peer->credentials);
    peer->credentials = NULL;
}
