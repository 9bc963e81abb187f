/* The differences between ngtcp2 0.12 (Debian 12) and 1.x, all of them. The rest of this house is written once. */
#ifndef QUIC_COMPAT_H
#define QUIC_COMPAT_H

#include <stdbool.h>

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "aster/bytes.h"

#if NGTCP2_VERSION_NUM >= 0x010000

typedef ngtcp2_ccerr aster_quic_close;
#define aster_quic_close_application ngtcp2_ccerr_set_application_error
#define aster_quic_close_library ngtcp2_ccerr_set_liberr
#define aster_quic_close_alert ngtcp2_ccerr_set_tls_alert
#define aster_quic_close_transport ngtcp2_ccerr_set_transport_error
#define ASTER_QUIC_CLOSE_IS_APPLICATION(close) ((close)->type == NGTCP2_CCERR_TYPE_APPLICATION)

static inline void aster_quic_close_received(ngtcp2_conn *conn, aster_quic_close *close)
{
    *close = *ngtcp2_conn_get_ccerr(conn);
}

static inline struct aster_bytes aster_quic_token(const ngtcp2_pkt_hd *header)
{
    return (struct aster_bytes){header->token, header->tokenlen};
}

static inline void aster_quic_set_token(ngtcp2_settings *settings, const ngtcp2_pkt_hd *header)
{
    settings->token = header->token;
    settings->tokenlen = header->tokenlen;
}

static inline void aster_quic_set_original(ngtcp2_transport_params *params, const ngtcp2_cid *cid)
{
    params->original_dcid = *cid;
    params->original_dcid_present = 1;
}

#else

typedef ngtcp2_connection_close_error aster_quic_close;
#define aster_quic_close_application ngtcp2_connection_close_error_set_application_error
#define aster_quic_close_library ngtcp2_connection_close_error_set_transport_error_liberr
#define aster_quic_close_alert ngtcp2_connection_close_error_set_transport_error_tls_alert
#define aster_quic_close_transport ngtcp2_connection_close_error_set_transport_error
#define aster_quic_close_received ngtcp2_conn_get_connection_close_error
#define ASTER_QUIC_CLOSE_IS_APPLICATION(close) ((close)->type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION)

static inline struct aster_bytes aster_quic_token(const ngtcp2_pkt_hd *header)
{
    return (struct aster_bytes){header->token.base, header->token.len};
}

static inline void aster_quic_set_token(ngtcp2_settings *settings, const ngtcp2_pkt_hd *header)
{
    settings->token = header->token;
}

static inline void aster_quic_set_original(ngtcp2_transport_params *params, const ngtcp2_cid *cid)
{
    params->original_dcid = *cid;
}

#endif

#endif
