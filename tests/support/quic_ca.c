#include "support/quic_ca.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <gnutls/crypto.h>

#include "platform/private_file.h"

static void must(int code)
{
    if (code < 0) {
        fail_msg("gnutls: %s", gnutls_strerror(code));
    }
}

static void prepare(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, const char *name, long from, long until)
{
    unsigned char serial[8];
    must(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial));
    serial[0] = 1;
    must(gnutls_x509_crt_set_version(certificate, 3));
    must(gnutls_x509_crt_set_serial(certificate, serial, sizeof serial));
    must(gnutls_x509_crt_set_activation_time(certificate, time(NULL) + from));
    must(gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + until));
    must(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name)));
    must(gnutls_x509_crt_set_key(certificate, key));
}

static gnutls_x509_privkey_t new_key(void)
{
    gnutls_x509_privkey_t key;
    must(gnutls_x509_privkey_init(&key));
    must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    return key;
}

static void write_pem(const char *path, gnutls_datum_t *pem, mode_t mode)
{
    assert_int_equal(aster_private_file_write(path, (struct aster_bytes){pem->data, pem->size}, mode, true, NULL),
                     ASTER_OK);
    gnutls_free(pem->data);
}

void quic_ca_init(struct quic_ca *ca, const char *name)
{
    ca->key = new_key();
    must(gnutls_x509_crt_init(&ca->certificate));
    prepare(ca->certificate, ca->key, name, -3600, 86400);
    must(gnutls_x509_crt_set_basic_constraints(ca->certificate, 1, -1));
    must(gnutls_x509_crt_set_key_usage(ca->certificate, GNUTLS_KEY_KEY_CERT_SIGN));
    must(gnutls_x509_crt_sign2(ca->certificate, ca->certificate, ca->key, GNUTLS_DIG_SHA256, 0));
}

void quic_ca_fini(struct quic_ca *ca)
{
    gnutls_x509_crt_deinit(ca->certificate);
    gnutls_x509_privkey_deinit(ca->key);
}

void quic_ca_write_root(const struct quic_ca *ca, const char *path)
{
    gnutls_datum_t pem;
    must(gnutls_x509_crt_export2(ca->certificate, GNUTLS_X509_FMT_PEM, &pem));
    write_pem(path, &pem, 0644);
}

void quic_ca_issue(const struct quic_ca *ca, const struct quic_ca_leaf *leaf, const char *key_path,
                   const char *certificate_path)
{
    gnutls_x509_crt_t certificate;
    gnutls_x509_privkey_t key = new_key();
    gnutls_datum_t pem;
    must(gnutls_x509_crt_init(&certificate));
    prepare(certificate, key, "leaf", leaf->from_seconds, leaf->until_seconds);
    must(gnutls_x509_crt_set_basic_constraints(certificate, 0, -1));
    must(gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE));
    for (size_t i = 0; i < 3 && leaf->uris[i] != NULL; i++) {
        must(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_URI, leaf->uris[i],
                                                  (unsigned)strlen(leaf->uris[i]), GNUTLS_FSAN_APPEND));
    }
    if (leaf->dns != NULL) {
        must(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, leaf->dns,
                                                  (unsigned)strlen(leaf->dns), GNUTLS_FSAN_APPEND));
    }
    if (leaf->purpose != NULL) {
        must(gnutls_x509_crt_set_key_purpose_oid(certificate, leaf->purpose, 0));
    }
    must(gnutls_x509_crt_sign2(certificate, ca->certificate, ca->key, GNUTLS_DIG_SHA256, 0));
    must(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem));
    write_pem(certificate_path, &pem, 0644);
    must(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &pem));
    write_pem(key_path, &pem, 0600);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}
