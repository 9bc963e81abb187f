/* A certificate authority for tests. */
#ifndef SUPPORT_QUIC_CA_H
#define SUPPORT_QUIC_CA_H

#include <gnutls/x509.h>

struct quic_ca {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
};

struct quic_ca_leaf {
    const char *uris[3]; /* URI names; NULL ends */
    const char *dns;     /* or NULL */
    long from_seconds;   /* relative to now */
    long until_seconds;
    const char *purpose; /* OID, or NULL for none */
};

void quic_ca_init(struct quic_ca *ca, const char *name);
void quic_ca_fini(struct quic_ca *ca);
void quic_ca_write_root(const struct quic_ca *ca, const char *path);
/* An ECDSA P-256 key and a certificate for it; the key file gets mode 0600. */
void quic_ca_issue(const struct quic_ca *ca, const struct quic_ca_leaf *leaf, const char *key_path,
                   const char *certificate_path);

#endif
