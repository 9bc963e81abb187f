#include <string.h>

#include "aster/grantor.h"
#include "base/error.h"
#include "quic/identity.h"

aster_status aster_grantor_certificate_identity(struct aster_bytes pem, bool spiffe,
                                                char identity[ASTER_IDENTITY_MAX + 1], struct aster_error *error)
{
    gnutls_x509_crt_t certificate;
    struct aster_identity found;
    if (pem.size > UINT32_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a certificate of %zu bytes is none", pem.size);
    }
    const gnutls_datum_t data = {(unsigned char *)(uintptr_t)pem.data, (unsigned)pem.size};
    if (gnutls_x509_crt_init(&certificate) < 0) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a certificate");
    }
    aster_status status;
    int code = gnutls_x509_crt_import(certificate, &data, GNUTLS_X509_FMT_PEM);
    if (code < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "this is no certificate in PEM (%s)", gnutls_strerror(code));
    } else {
        status = aster_identity_of_certificate(certificate, spiffe ? ASTER_TRUST_CA : ASTER_TRUST_KEY, &found, error);
    }
    gnutls_x509_crt_deinit(certificate);
    if (status == ASTER_OK) {
        memcpy(identity, found.text, found.size + 1);
    }
    return status;
}
