#include "quic/credentials.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <gnutls/crypto.h>

#include "base/error.h"
#include "platform/private_file.h"

#define FILE_MAX_BYTES 1048576 /* of roots there may be many */
#define DIGEST_SIZE 32

struct aster_credentials {
    atomic_uint references;
    enum aster_trust trust;
    struct aster_identity identity;
    unsigned char roots[DIGEST_SIZE]; /* of their file; all zero in key mode */
    gnutls_certificate_credentials_t native;
};

static aster_status read_pem(const char *path, bool secret, gnutls_datum_t *pem, struct aster_error *error)
{
    char *content;
    size_t size;
    aster_status status = aster_private_file_read(path, FILE_MAX_BYTES, secret, &content, &size, error);
    if (status == ASTER_OK) {
        *pem = (gnutls_datum_t){(unsigned char *)content, (unsigned)size};
    }
    return status;
}

static aster_status set_key(struct aster_credentials *credentials, const struct aster_credentials_files *files,
                            const gnutls_datum_t *key, const gnutls_datum_t *certificate, struct aster_error *error)
{
    int code =
        gnutls_certificate_set_x509_key_mem2(credentials->native, certificate, key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s and %s are not a certificate and its key (%s)",
                               files->certificate, files->key, gnutls_strerror(code));
    }
    return ASTER_OK;
}

/* GnuTLS' own check passes every Ed25519 key. */
static bool key_belongs(gnutls_certificate_credentials_t native, gnutls_x509_crt_t certificate)
{
    unsigned char of_key[64];
    unsigned char of_certificate[64];
    size_t key_size = sizeof of_key;
    size_t certificate_size = sizeof of_certificate;
    gnutls_x509_privkey_t key;
    if (gnutls_certificate_get_x509_key(native, 0, &key) < 0) {
        return false;
    }
    bool same =
        gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &key_size) == 0 &&
        gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, of_certificate, &certificate_size) == 0 &&
        key_size == certificate_size && memcmp(of_key, of_certificate, key_size) == 0;
    gnutls_x509_privkey_deinit(key);
    return same;
}

static aster_status set_identity(struct aster_credentials *credentials, const char *path, const gnutls_datum_t *pem,
                                 struct aster_error *error)
{
    gnutls_x509_crt_t certificate;
    int code = gnutls_x509_crt_init(&certificate);
    if (code < 0) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "cannot read %s (%s)", path, gnutls_strerror(code));
    }
    code = gnutls_x509_crt_import(certificate, pem, GNUTLS_X509_FMT_PEM);
    aster_status status;
    if (code < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "%s is not a certificate in PEM (%s)", path,
                                 gnutls_strerror(code));
    } else if (!key_belongs(credentials->native, certificate)) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "%s is the certificate of another key: renew it, or find its key", path);
    } else {
        status = aster_identity_of_certificate(certificate, credentials->trust, &credentials->identity, error);
    }
    gnutls_x509_crt_deinit(certificate);
    return status;
}

static aster_status set_roots(struct aster_credentials *credentials, const char *path, struct aster_error *error)
{
    gnutls_datum_t pem = {NULL, 0};
    aster_status status = read_pem(path, false, &pem, error);
    if (status != ASTER_OK) {
        return status;
    }
    int count = gnutls_certificate_set_x509_trust_mem(credentials->native, &pem, GNUTLS_X509_FMT_PEM);
    if (count >= 0 && gnutls_hash_fast(GNUTLS_DIG_SHA256, pem.data, pem.size, credentials->roots) < 0) {
        count = 0;
    }
    free(pem.data);
    if (count < 1) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s holds no root certificate in PEM: no peer could be believed", path);
    }
    return ASTER_OK;
}

static aster_status fill(struct aster_credentials *credentials, const struct aster_credentials_files *files,
                         struct aster_error *error)
{
    gnutls_datum_t key = {NULL, 0};
    gnutls_datum_t certificate = {NULL, 0};
    aster_status status = read_pem(files->key, true, &key, error);
    if (status == ASTER_OK) {
        status = read_pem(files->certificate, false, &certificate, error);
    }
    if (status == ASTER_OK) {
        status = set_key(credentials, files, &key, &certificate, error);
    }
    if (status == ASTER_OK) {
        status = set_identity(credentials, files->certificate, &certificate, error);
    }
    if (status == ASTER_OK && files->roots != NULL) {
        status = set_roots(credentials, files->roots, error);
    }
    if (key.data != NULL) {
        gnutls_memset(key.data, 0, key.size);
    }
    free(key.data);
    free(certificate.data);
    return status;
}

aster_status aster_credentials_load(const struct aster_credentials_files *files, struct aster_credentials **credentials,
                                    struct aster_error *error)
{
    struct aster_credentials *made = calloc(1, sizeof *made);
    if (made == NULL || gnutls_certificate_allocate_credentials(&made->native) < 0) {
        free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for credentials");
    }
    atomic_init(&made->references, 1);
    made->trust = files->roots != NULL ? ASTER_TRUST_CA : ASTER_TRUST_KEY;
    aster_status status = fill(made, files, error);
    if (status != ASTER_OK) {
        aster_credentials_unref(made);
        return status;
    }
    *credentials = made;
    return ASTER_OK;
}

aster_status aster_credentials_load_node(const char *directory, struct aster_credentials **credentials,
                                         struct aster_error *error)
{
    struct aster_node_paths paths;
    aster_status status = aster_node_paths(directory, &paths, error);
    if (status != ASTER_OK) {
        return status;
    }
    const struct aster_credentials_files files = {paths.key, paths.certificate, NULL};
    return aster_credentials_load(&files, credentials, error);
}

struct aster_credentials *aster_credentials_ref(struct aster_credentials *credentials)
{
    atomic_fetch_add_explicit(&credentials->references, 1, memory_order_relaxed);
    return credentials;
}

void aster_credentials_unref(struct aster_credentials *credentials)
{
    if (credentials != NULL && atomic_fetch_sub_explicit(&credentials->references, 1, memory_order_acq_rel) == 1) {
        gnutls_certificate_free_credentials(credentials->native);
        free(credentials);
    }
}

enum aster_trust aster_credentials_trust(const struct aster_credentials *credentials)
{
    return credentials->trust;
}

bool aster_credentials_same_roots(const struct aster_credentials *a, const struct aster_credentials *b)
{
    return a->trust == b->trust && memcmp(a->roots, b->roots, sizeof a->roots) == 0;
}

struct aster_bytes aster_credentials_identity(const struct aster_credentials *credentials)
{
    return aster_identity_bytes(&credentials->identity);
}

gnutls_certificate_credentials_t aster_credentials_native(const struct aster_credentials *credentials)
{
    return credentials->native;
}
