/* One TLS 1.3 session, mutual, with ALPN "aster/1", without tickets and without early data; and the judgement about its
 * peer. */
#ifndef QUIC_TLS_H
#define QUIC_TLS_H

#include <ngtcp2/ngtcp2_crypto.h>

#include "quic/credentials.h"

#define ASTER_ALPN "aster/1"

struct aster_tls_peer {
    ngtcp2_crypto_conn_ref ref; /* first, and what GnuTLS keeps as the session's pointer: ngtcp2 wants it so */
    gnutls_session_t session;
    struct aster_credentials *credentials;
    bool accepted; /* we are the server */
    bool (*admit)(struct aster_bytes identity, void *user);
    void *admit_user;
    struct aster_identity expected; /* of the server; empty = whoever is admitted */
    struct aster_identity seen;     /* whom the certificate names, before it is proved */
    struct aster_identity identity; /* bound by the handshake; empty before */
    bool refused;                   /* the judgement was no; `error` says why */
    struct aster_error error;
};

enum aster_tls_carrier { ASTER_TLS_OVER_QUIC = 1, ASTER_TLS_OVER_TCP = 2 };

/* Make the session. The caller fills `ref` for QUIC, with `connection` as user_data. Takes a reference of the
 * credentials. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (the library refuses the configuration). */
aster_status aster_tls_peer_init(struct aster_tls_peer *peer, struct aster_credentials *credentials, bool accepted,
                                 struct aster_bytes expected, bool (*admit)(struct aster_bytes identity, void *user),
                                 void *admit_user, struct aster_error *error);
aster_status aster_tls_peer_start(struct aster_tls_peer *peer, enum aster_tls_carrier carrier,
                                  struct aster_error *error);

/* The handshake has proved that the peer has its key: bind the identity. Errors: ASTER_ERR_INVALID (no common ALPN, not
 * admitted, not the expected one). */
aster_status aster_tls_peer_bind(struct aster_tls_peer *peer, struct aster_error *error);

/* Judge a bound peer once more, by these credentials, of which it takes a reference: would it be let in today, as the
 * same? Errors: as aster_tls_peer_bind(). */
aster_status aster_tls_peer_judge_again(struct aster_tls_peer *peer, struct aster_credentials *credentials,
                                        struct aster_error *error);

/* Free the session, keep the identity. */
void aster_tls_peer_stop(struct aster_tls_peer *peer);
void aster_tls_peer_fini(struct aster_tls_peer *peer);

#endif
