#include "quic/node.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "platform/entropy.h"
#include "platform/private_file.h"
#include "quic/identity.h"

#define NAME_MAX_BYTES 64
#define FILE_MAX_BYTES 65536
#define SECONDS_PER_DAY 86400
#define CLOCK_SKEW_SECONDS 3600 /* a peer whose clock is late must not call a fresh certificate invalid */

aster_status aster_node_paths(const char *directory, struct aster_node_paths *paths, struct aster_error *error)
{
    int length = snprintf(paths->secret, sizeof paths->secret, "%s/endpoint.secret", directory);
    if (length < 0 || (size_t)length >= sizeof paths->secret) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the directory's name is too long: %.100s...", directory);
    }
    snprintf(paths->key, sizeof paths->key, "%s/node.key", directory);
    snprintf(paths->certificate, sizeof paths->certificate, "%s/node.crt", directory);
    return ASTER_OK;
}

static aster_status tls_error(struct aster_error *error, int code, const char *what)
{
    return aster_error_set(error, ASTER_ERR_IO, "%s (%s)", what, gnutls_strerror(code));
}

static int fill_certificate(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, const char *name, int days)
{
    unsigned char serial[16];
    int code = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);
    serial[0] &= 0x7f; /* positive */
    serial[0] |= 0x01;
    time_t now = time(NULL);
    const struct {
        int result;
    } steps[] = {
        {code},
        {gnutls_x509_crt_set_version(certificate, 3)},
        {gnutls_x509_crt_set_serial(certificate, serial, sizeof serial)},
        {gnutls_x509_crt_set_activation_time(certificate, now - CLOCK_SKEW_SECONDS)},
        {gnutls_x509_crt_set_expiration_time(certificate, now + (time_t)days * SECONDS_PER_DAY)},
        {gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name))},
        {gnutls_x509_crt_set_key(certificate, key)},
        {gnutls_x509_crt_set_basic_constraints(certificate, 0, -1)},
        {gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE)},
        {gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0)},
        {gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_CLIENT, 0)},
        {gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0)},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].result < 0) {
            return steps[i].result;
        }
    }
    return 0;
}

static aster_status make_certificate(gnutls_x509_privkey_t key, const char *name, int days, gnutls_datum_t *pem,
                                     char id[ASTER_NODE_ID_SIZE], struct aster_error *error)
{
    gnutls_x509_crt_t certificate;
    int code = gnutls_x509_crt_init(&certificate);
    if (code < 0) {
        return tls_error(error, code, "cannot make a certificate");
    }
    struct aster_identity identity;
    aster_status status = ASTER_OK;
    code = fill_certificate(certificate, key, name, days);
    if (code >= 0) {
        code = gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, pem);
    }
    if (code < 0) {
        status = tls_error(error, code, "cannot make a certificate");
    } else {
        status = aster_identity_of_certificate(certificate, ASTER_TRUST_KEY, &identity, error);
    }
    if (status == ASTER_OK) {
        memcpy(id, identity.text, ASTER_NODE_ID_SIZE);
    } else {
        gnutls_free(pem->data);
        pem->data = NULL;
    }
    gnutls_x509_crt_deinit(certificate);
    return status;
}

static aster_status check_arguments(const char *name, int days, struct aster_error *error)
{
    aster_status status = aster_identity_check(aster_text(name), "node name", error);
    if (status == ASTER_OK && strlen(name) > NAME_MAX_BYTES) {
        status =
            aster_error_set(error, ASTER_ERR_INVALID, "the node name is %zu bytes long, the limit is %d: shorten it",
                            strlen(name), NAME_MAX_BYTES);
    }
    if (status == ASTER_OK && (days < 1 || days > 36500)) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "a certificate for %d days: give 1 to 36500", days);
    }
    return status;
}

static void free_secret(gnutls_datum_t *pem)
{
    if (pem->data != NULL) {
        gnutls_memset(pem->data, 0, pem->size);
        gnutls_free(pem->data);
    }
}

static aster_status write_node(const struct aster_node_paths *paths, gnutls_x509_privkey_t key, const char *name,
                               int days, char id[ASTER_NODE_ID_SIZE], struct aster_error *error)
{
    gnutls_datum_t key_pem = {NULL, 0};
    gnutls_datum_t certificate_pem = {NULL, 0};
    aster_status status = make_certificate(key, name, days, &certificate_pem, id, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &key_pem);
    if (code < 0) {
        status = tls_error(error, code, "cannot export a key");
    } else {
        /* The key first: a certificate without its key would block nothing and mean nothing. */
        status =
            aster_private_file_write(paths->key, (struct aster_bytes){key_pem.data, key_pem.size}, 0600, false, error);
    }
    if (status == ASTER_OK) {
        struct aster_bytes content = {certificate_pem.data, certificate_pem.size};
        status = aster_private_file_write(paths->certificate, content, 0644, true, error);
    }
    free_secret(&key_pem);
    gnutls_free(certificate_pem.data);
    return status;
}

aster_status aster_node_create(const char *directory, const char *name, int days, char id[ASTER_NODE_ID_SIZE],
                               struct aster_error *error)
{
    struct aster_node_paths paths;
    char made[ASTER_NODE_ID_SIZE];
    gnutls_x509_privkey_t key;
    aster_status status = check_arguments(name, days, error);
    if (status == ASTER_OK) {
        status = aster_node_paths(directory, &paths, error);
    }
    if (status == ASTER_OK) {
        status = aster_private_directory(directory, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    int code = gnutls_x509_privkey_init(&key);
    if (code < 0) {
        return tls_error(error, code, "cannot make a key");
    }
    code =
        gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519), 0);
    status = code < 0 ? tls_error(error, code, "cannot make a key") : write_node(&paths, key, name, days, made, error);
    gnutls_x509_privkey_deinit(key);
    if (status == ASTER_OK) {
        memcpy(id, made, sizeof made);
    }
    return status;
}

static aster_status load_key(const char *path, gnutls_x509_privkey_t key, struct aster_error *error)
{
    char *content;
    size_t size;
    aster_status status = aster_private_file_read(path, FILE_MAX_BYTES, true, &content, &size, error);
    if (status != ASTER_OK) {
        return status;
    }
    const gnutls_datum_t pem = {(unsigned char *)content, (unsigned)size};
    int code = gnutls_x509_privkey_import2(key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "%s is not a private key in PEM (%s)", path,
                                 gnutls_strerror(code));
    }
    gnutls_memset(content, 0, size);
    free(content);
    return status;
}

aster_status aster_node_renew(const char *directory, const char *name, int days, struct aster_error *error)
{
    struct aster_node_paths paths;
    char id[ASTER_NODE_ID_SIZE];
    gnutls_x509_privkey_t key;
    gnutls_datum_t pem = {NULL, 0};
    aster_status status = check_arguments(name, days, error);
    if (status == ASTER_OK) {
        status = aster_node_paths(directory, &paths, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    int code = gnutls_x509_privkey_init(&key);
    if (code < 0) {
        return tls_error(error, code, "cannot read a key");
    }
    status = load_key(paths.key, key, error);
    if (status == ASTER_OK) {
        status = make_certificate(key, name, days, &pem, id, error);
    }
    if (status == ASTER_OK) {
        struct aster_bytes content = {pem.data, pem.size};
        status = aster_private_file_write(paths.certificate, content, 0644, true, error);
        gnutls_free(pem.data);
    }
    gnutls_x509_privkey_deinit(key);
    return status;
}

static aster_status read_facts(const char *path, const gnutls_datum_t *pem, gnutls_x509_crt_t certificate,
                               struct aster_node_facts *facts, struct aster_error *error)
{
    struct aster_identity identity;
    struct aster_node_facts read = {{0}, {0}, 0, 0};
    size_t size = sizeof read.name;
    int code = gnutls_x509_crt_import(certificate, pem, GNUTLS_X509_FMT_PEM);
    if (code < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is not a certificate in PEM (%s)", path,
                               gnutls_strerror(code));
    }
    aster_status status = aster_identity_of_certificate(certificate, ASTER_TRUST_KEY, &identity, error);
    if (status != ASTER_OK) {
        return status;
    }
    memcpy(read.id, identity.text, sizeof read.id);
    if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, read.name, &size) < 0) {
        read.name[0] = '\0';
    }
    read.from_unix_s = gnutls_x509_crt_get_activation_time(certificate);
    read.until_unix_s = gnutls_x509_crt_get_expiration_time(certificate);
    *facts = read;
    return ASTER_OK;
}

aster_status aster_node_describe(const char *directory, struct aster_node_facts *facts, struct aster_error *error)
{
    struct aster_node_paths paths;
    char *content;
    size_t size;
    aster_status status = aster_node_paths(directory, &paths, error);
    if (status == ASTER_OK) {
        status = aster_private_file_read(paths.certificate, FILE_MAX_BYTES, false, &content, &size, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    gnutls_x509_crt_t certificate;
    const gnutls_datum_t pem = {(unsigned char *)content, (unsigned)size};
    int code = gnutls_x509_crt_init(&certificate);
    if (code < 0) {
        status = tls_error(error, code, "cannot read a certificate");
    } else {
        status = read_facts(paths.certificate, &pem, certificate, facts, error);
        gnutls_x509_crt_deinit(certificate);
    }
    free(content);
    return status;
}

aster_status aster_node_id(const char *directory, char id[ASTER_NODE_ID_SIZE], struct aster_error *error)
{
    struct aster_node_facts facts;
    aster_status status = aster_node_describe(directory, &facts, error);
    if (status == ASTER_OK) {
        memcpy(id, facts.id, sizeof facts.id);
    }
    return status;
}

static aster_status make_secret(const char *path, struct aster_error *error)
{
    unsigned char fresh[ASTER_ENDPOINT_SECRET_SIZE];
    aster_status status = aster_entropy_fill(fresh, sizeof fresh, error);
    if (status == ASTER_OK) {
        status = aster_private_file_write(path, (struct aster_bytes){fresh, sizeof fresh}, 0600, false, error);
        if (status == ASTER_ERR_INVALID) {
            status = ASTER_OK; /* another process made it meanwhile: that one counts */
        }
    }
    gnutls_memset(fresh, 0, sizeof fresh);
    return status;
}

aster_status aster_node_secret(const char *directory, unsigned char secret[ASTER_ENDPOINT_SECRET_SIZE],
                               struct aster_error *error)
{
    struct aster_node_paths paths;
    char *content;
    size_t size;
    aster_status status = aster_node_paths(directory, &paths, error);
    if (status == ASTER_OK) {
        status = make_secret(paths.secret, error);
    }
    if (status == ASTER_OK) {
        status = aster_private_file_read(paths.secret, FILE_MAX_BYTES, true, &content, &size, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    if (size != ASTER_ENDPOINT_SECRET_SIZE) {
        status =
            aster_error_set(error, ASTER_ERR_CORRUPT, "%s has %zu bytes instead of %d: remove it, a new one is made",
                            paths.secret, size, ASTER_ENDPOINT_SECRET_SIZE);
    } else {
        memcpy(secret, content, size);
    }
    gnutls_memset(content, 0, size);
    free(content);
    return status;
}
