#include "quic/identity.h"

#include <gnutls/abstract.h>
#include <time.h>

#include "base/error.h"

static aster_status tls_error(struct aster_error *error, int code, const char *what)
{
    return aster_error_set(error, ASTER_ERR_INVALID, "%s (%s)", what, gnutls_strerror(code));
}

static aster_status key_identity(gnutls_x509_crt_t certificate, struct aster_identity *identity,
                                 struct aster_error *error)
{
    gnutls_pubkey_t key;
    gnutls_ecc_curve_t curve;
    gnutls_datum_t raw = {NULL, 0};
    int code = gnutls_pubkey_init(&key);
    if (code < 0) {
        return tls_error(error, code, "cannot read a certificate's key");
    }
    aster_status status = ASTER_OK;
    code = gnutls_pubkey_import_x509(key, certificate, 0);
    if (code >= 0) {
        code = gnutls_pubkey_export_ecc_raw2(key, &curve, &raw, NULL, 0);
    }
    if (code < 0 || curve != GNUTLS_ECC_CURVE_ED25519 || raw.size != 32) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "a certificate's key is not Ed25519: make one with `aster node new`, or use CA mode");
    } else {
        static const char digits[] = "0123456789abcdef";
        for (unsigned i = 0; i < raw.size; i++) {
            identity->text[2 * i] = digits[raw.data[i] >> 4];
            identity->text[2 * i + 1] = digits[raw.data[i] & 15];
        }
        identity->size = 2 * (size_t)raw.size;
        identity->text[identity->size] = '\0';
    }
    gnutls_free(raw.data);
    gnutls_pubkey_deinit(key);
    return status;
}

static bool path_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '.' || byte == '-' || byte == '_';
}

/* One segment: not empty, not "." or "..". */
static bool segment_valid(const char *text, size_t size)
{
    if (size == 0 || (size == 1 && text[0] == '.') || (size == 2 && text[0] == '.' && text[1] == '.')) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (!path_byte(text[i])) {
            return false;
        }
    }
    return true;
}

bool aster_spiffe_id_valid(struct aster_bytes id)
{
    static const char scheme[] = "spiffe://";
    const size_t prefix = sizeof scheme - 1;
    if (id.size <= prefix || id.size > ASTER_IDENTITY_MAX || memcmp(id.data, scheme, prefix) != 0) {
        return false;
    }
    const char *at = (const char *)id.data + prefix;
    const char *end = (const char *)id.data + id.size;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    const char *domain_end = slash != NULL ? slash : end;
    if (domain_end == at) {
        return false;
    }
    for (const char *byte = at; byte < domain_end; byte++) {
        if (!path_byte(*byte) || (*byte >= 'A' && *byte <= 'Z')) {
            return false;
        }
    }
    while (slash != NULL) {
        at = slash + 1;
        slash = memchr(at, '/', (size_t)(end - at));
        if (!segment_valid(at, (size_t)((slash != NULL ? slash : end) - at))) {
            return false;
        }
    }
    return true;
}

/* A SPIFFE certificate has exactly one URI; with two, which one is meant would be the peer's choice. */
static aster_status spiffe_identity(gnutls_x509_crt_t certificate, struct aster_identity *identity,
                                    struct aster_error *error)
{
    unsigned uris = 0;
    for (unsigned i = 0;; i++) {
        char name[ASTER_IDENTITY_MAX + 1];
        size_t size = sizeof name;
        int type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, NULL);
        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
            break;
        }
        if (type == GNUTLS_E_SHORT_MEMORY_BUFFER) {
            return aster_error_set(error, ASTER_ERR_INVALID, "a certificate has a name of %zu bytes, the limit is %d",
                                   size, ASTER_IDENTITY_MAX);
        }
        if (type < 0) {
            return tls_error(error, type, "cannot read a certificate's names");
        }
        if (type != GNUTLS_SAN_URI) {
            continue;
        }
        if (++uris > 1 || !aster_spiffe_id_valid((struct aster_bytes){name, size})) {
            return aster_error_set(
                error, ASTER_ERR_INVALID,
                "a certificate's URI name is not exactly one SPIFFE id: issue it with one, spiffe://domain/path");
        }
        memcpy(identity->text, name, size);
        identity->text[size] = '\0';
        identity->size = size;
    }
    if (uris == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "a certificate has no SPIFFE id: issue it with one, spiffe://domain/path");
    }
    return ASTER_OK;
}

aster_status aster_identity_of_certificate(gnutls_x509_crt_t certificate, enum aster_trust trust,
                                           struct aster_identity *identity, struct aster_error *error)
{
    struct aster_identity found = {{0}, 0};
    aster_status status = trust == ASTER_TRUST_KEY ? key_identity(certificate, &found, error)
                                                   : spiffe_identity(certificate, &found, error);
    if (status == ASTER_OK) {
        *identity = found;
    }
    return status;
}

static aster_status check_validity(gnutls_x509_crt_t certificate, struct aster_error *error)
{
    time_t now = time(NULL);
    if (now < gnutls_x509_crt_get_activation_time(certificate)) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the peer's certificate is not valid yet: check both clocks");
    }
    if (now > gnutls_x509_crt_get_expiration_time(certificate)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the peer's certificate has expired: renew it under the same key");
    }
    return ASTER_OK;
}

static aster_status check_chain(gnutls_session_t session, bool peer_is_client, struct aster_error *error)
{
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)(uintptr_t)(peer_is_client ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER)};
    unsigned judgement = 0;
    int code = gnutls_certificate_verify_peers(session, &purpose, 1, &judgement);
    if (code < 0) {
        return tls_error(error, code, "the peer's certificate cannot be verified");
    }
    if (judgement != 0) {
        gnutls_datum_t text = {NULL, 0};
        gnutls_certificate_verification_status_print(judgement, GNUTLS_CRT_X509, &text, 0);
        aster_error_set(error, ASTER_ERR_INVALID, "the peer's certificate was refused: %s",
                        text.data != NULL ? (const char *)text.data : "unknown reason");
        gnutls_free(text.data);
        return ASTER_ERR_INVALID;
    }
    return ASTER_OK;
}

aster_status aster_identity_of_peer(gnutls_session_t session, enum aster_trust trust, bool peer_is_client,
                                    struct aster_identity *identity, struct aster_error *error)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    gnutls_x509_crt_t certificate;
    if (chain == NULL || count == 0 || gnutls_certificate_type_get(session) != GNUTLS_CRT_X509) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the peer showed no certificate");
    }
    int code = gnutls_x509_crt_init(&certificate);
    if (code < 0) {
        return tls_error(error, code, "cannot read the peer's certificate");
    }
    aster_status status = ASTER_OK;
    code = gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER);
    if (code < 0) {
        status = tls_error(error, code, "cannot read the peer's certificate");
    } else if (trust == ASTER_TRUST_CA) {
        status = check_chain(session, peer_is_client, error);
    } else {
        status = check_validity(certificate, error);
    }
    if (status == ASTER_OK) {
        status = aster_identity_of_certificate(certificate, trust, identity, error);
    }
    gnutls_x509_crt_deinit(certificate);
    return status;
}
