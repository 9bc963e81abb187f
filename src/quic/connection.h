/* One QUIC connection, of either side. */
#ifndef QUIC_CONNECTION_H
#define QUIC_CONNECTION_H

#include "quic/compat.h"
#include "quic/endpoint.h"

/* Application error codes of CONNECTION_CLOSE. */
enum aster_close_code {
    ASTER_CLOSE_DONE = 0,
    ASTER_CLOSE_REFUSED = 1,
    ASTER_CLOSE_PROTOCOL = 2,
    ASTER_CLOSE_OVERLOAD = 3
};

enum aster_connection_phase {
    ASTER_CONNECTION_LIVE = 1,
    ASTER_CONNECTION_CLOSING = 2,  /* we told the peer; late packets are answered with the same again */
    ASTER_CONNECTION_DRAINING = 3, /* the peer told us; late packets are ignored */
    ASTER_CONNECTION_DEAD = 4      /* freed at the end of the round */
};

struct aster_connection {
    struct aster_link link; /* first */
    struct aster_endpoint *endpoint;
    struct aster_udp *udp;    /* the listener's, or `own` */
    struct aster_udp own;     /* of a connection that we began: routes by socket, so resets find it */
    struct aster_watch watch; /* of `own` */
    struct aster_timer timer;
    ngtcp2_conn *conn; /* NULL unless live */
    int64_t stream_id; /* the one stream; -1 until it is open */
    enum aster_connection_phase phase;
    struct aster_cid_entry *cids;
    struct aster_connection *next_dirty;
    bool dirty;
    unsigned unheard;  /* packets with stream data since the last write */
    bool overdue;      /* the timer fired: what is held back must go */
    bool forgotten;    /* a stateless reset came */
    unsigned refusals; /* "port unreachable" since the last datagram */
    struct aster_address local;
    unsigned char *farewell; /* closing: the packet with CONNECTION_CLOSE */
    size_t farewell_size;
    unsigned late; /* closing: packets since */
};

static inline struct aster_connection *aster_connection_of(struct aster_link *link)
{
    return (struct aster_connection *)link;
}

/* Begin as a client. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO, ASTER_ERR_UNREACHABLE. */
aster_status aster_connection_connect(struct aster_endpoint *endpoint, const struct aster_address *remote,
                                      struct aster_bytes expected, void *user, struct aster_connection **connection,
                                      struct aster_error *error);
/* Begin as a server with the client's first packet, whose header is given; `original` is the client's first id when a
 * Retry was sent, else NULL. The caller then reads the packet. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO. */
aster_status aster_connection_accept(struct aster_endpoint *endpoint, struct aster_listener *listener,
                                     const struct aster_datagram *datagram, const ngtcp2_pkt_hd *header,
                                     const ngtcp2_cid *original, struct aster_connection **connection,
                                     struct aster_error *error);
void aster_connection_free(struct aster_connection *connection);

void aster_connection_read(struct aster_connection *connection, const struct aster_datagram *datagram);
/* Write what there is, or end. */
void aster_connection_write(struct aster_connection *connection);
/* To be written at the end of this round. */
void aster_connection_mark(struct aster_connection *connection);

/* Ends (connection_end.c). fail: a library call returned `code`. vanish: no goodbye. close: say goodbye. */
void aster_connection_fail(struct aster_connection *connection, int code);
void aster_connection_vanish(struct aster_connection *connection, enum aster_link_end end, const char *message);
void aster_connection_close(struct aster_connection *connection, const aster_quic_close *reason,
                            enum aster_link_end end, const struct aster_error *error);
void aster_connection_drain(struct aster_connection *connection);
/* Of a link's operations: the handshake makes way for another. */
void aster_connection_evict(struct aster_link *link, const struct aster_error *error);
/* A packet for a connection that is closing. */
void aster_connection_answer_late(struct aster_connection *connection);

/* ngtcp2's callbacks (connection_callbacks.c). */
extern const ngtcp2_callbacks aster_server_callbacks;
extern const ngtcp2_callbacks aster_client_callbacks;
void aster_quic_random(uint8_t *data, size_t size, const ngtcp2_rand_ctx *context);

#endif
