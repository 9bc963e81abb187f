/* The fallback transport: TLS 1.3 over TCP with the same certificates and frames.
 *
 * Two things that QUIC has are added. A byte 0x01 from the server says that it has judged the client (QUIC's
 * HANDSHAKE_DONE); before it the client sends nothing. A TLS alert says why a side ends (QUIC's CONNECTION_CLOSE). */
#ifndef QUIC_TCP_LINK_H
#define QUIC_TCP_LINK_H

#include "quic/link.h"

#define ASTER_TCP_ACCEPTED 0x01
#define ASTER_TCP_RECORD 16384 /* bytes of one TLS record */

enum aster_tcp_phase {
    ASTER_TCP_CONNECTING = 1,
    ASTER_TCP_SHAKING = 2,
    ASTER_TCP_WAITING = 3, /* client: for the server's judgement */
    ASTER_TCP_OPEN = 4,
    ASTER_TCP_LINGERING = 5, /* we ended it: reading on until the peer has seen why, a moment long */
    ASTER_TCP_DEAD = 6       /* freed at the end of the round */
};

struct aster_tcp;

struct aster_tcp_listener {
    struct aster_watch watch; /* first */
    struct aster_timer pause; /* set: the process is out of descriptors, and nothing is accepted */
    struct aster_tcp *tcp;
    struct aster_tcp_listener *next;
};

struct aster_tcp {
    struct aster_transport transport; /* first */
    struct aster_round round;
    struct aster_tcp_listener *listeners;
    struct aster_tcp_link *dirty;
    unsigned char buffer[ASTER_TCP_RECORD];
};

struct aster_tcp_link {
    struct aster_link link; /* first */
    struct aster_tcp *tcp;
    struct aster_watch watch;
    struct aster_timer timer; /* of the handshake, then of lingering */
    enum aster_tcp_phase phase;
    uint32_t events; /* what is watched */
    size_t pending;  /* bytes of a record that TLS has taken and not sent */
    bool blocked;    /* the socket takes no more now */
    bool dirty;
    struct aster_tcp_link *next_dirty;
};

/* Begin as a client. Errors: as aster_transport_connect(). */
aster_status aster_tcp_link_connect(struct aster_tcp *tcp, const struct aster_address *remote,
                                    struct aster_bytes expected, void *user, struct aster_tcp_link **link,
                                    struct aster_error *error);
/* Begin as a server; takes the descriptor, also on failure. */
aster_status aster_tcp_link_accept(struct aster_tcp *tcp, int fd, const struct aster_address *remote,
                                   struct aster_error *error);
void aster_tcp_link_free(struct aster_tcp_link *link);
/* Write what there is, or end. */
void aster_tcp_link_write(struct aster_tcp_link *link);

#endif
