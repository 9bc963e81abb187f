/* From a certificate to an identity. */
#ifndef QUIC_IDENTITY_H
#define QUIC_IDENTITY_H

#include <stdbool.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "aster/bytes.h"
#include "aster/limits.h"
#include "quic/node.h"

/* How peers are known. */
enum aster_trust {
    ASTER_TRUST_KEY = 1, /* by their Ed25519 key: identity = 64 lower-case hexadecimal digits of it */
    ASTER_TRUST_CA = 2   /* by a certificate of a configured root: identity = its one SPIFFE id */
};

struct aster_identity {
    char text[ASTER_IDENTITY_MAX + 1];
    size_t size;
};

static inline struct aster_bytes aster_identity_bytes(const struct aster_identity *identity)
{
    return (struct aster_bytes){identity->text, identity->size};
}

/* The identity that a certificate claims; says nothing about who holds its key. Errors: ASTER_ERR_INVALID. */
aster_status aster_identity_of_certificate(gnutls_x509_crt_t certificate, enum aster_trust trust,
                                           struct aster_identity *identity, struct aster_error *error);

/* The identity of the session's peer: validity in time and, in CA mode, the chain up to a configured root are checked.
 * Binding only after the handshake has proved that the peer has the key. Errors: ASTER_ERR_INVALID. */
aster_status aster_identity_of_peer(gnutls_session_t session, enum aster_trust trust, bool peer_is_client,
                                    struct aster_identity *identity, struct aster_error *error);

/* "spiffe://trust.domain/path" by the rules of the SPIFFE standard. Pure. */
bool aster_spiffe_id_valid(struct aster_bytes id);

#endif
