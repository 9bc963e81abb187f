/* Who this process is and whom it believes: a key, a certificate and, in CA mode, roots. Immutable and counted: a
 * reload makes new ones, and sessions keep the old ones alive for as long as they need them (GnuTLS does not copy). */
#ifndef QUIC_CREDENTIALS_H
#define QUIC_CREDENTIALS_H

#include "quic/identity.h"

struct aster_credentials;

struct aster_credentials_files {
    const char *key;         /* PEM, 0600 */
    const char *certificate; /* PEM; in CA mode followed by its intermediates */
    const char *roots;       /* PEM; NULL = key mode */
};

/* Load and check: permissions, key and certificate belong together, the identity exists. The caller owns one reference.
 * Errors: ASTER_ERR_IO, ASTER_ERR_INVALID, ASTER_ERR_NOMEM. Thread-safe. */
aster_status aster_credentials_load(const struct aster_credentials_files *files, struct aster_credentials **credentials,
                                    struct aster_error *error);
/* The same for the files of a node in key mode. */
aster_status aster_credentials_load_node(const char *directory, struct aster_credentials **credentials,
                                         struct aster_error *error);

struct aster_credentials *aster_credentials_ref(struct aster_credentials *credentials); /* thread-safe */
void aster_credentials_unref(struct aster_credentials *credentials);                    /* thread-safe; NULL is legal */

enum aster_trust aster_credentials_trust(const struct aster_credentials *credentials);
/* Do both believe the same roots? In key mode there are none. */
bool aster_credentials_same_roots(const struct aster_credentials *a, const struct aster_credentials *b);
/* Our own identity; lives as long as the credentials. */
struct aster_bytes aster_credentials_identity(const struct aster_credentials *credentials);
gnutls_certificate_credentials_t aster_credentials_native(const struct aster_credentials *credentials);

#endif
