/* The QUIC transport: sockets, routing of datagrams to connections, and the end of each round. */
#ifndef QUIC_ENDPOINT_H
#define QUIC_ENDPOINT_H

#include "platform/udp.h"
#include "quic/cid_table.h"
#include "quic/link.h"

#define ASTER_CID_SIZE 16 /* bytes of the ids that we choose: random, so they need no structure to be routed by */

struct aster_listener {
    struct aster_watch watch; /* first */
    struct aster_udp udp;
    struct aster_endpoint *endpoint;
    struct aster_listener *next;
};

struct aster_endpoint {
    struct aster_transport transport; /* first */
    struct aster_round round;
    struct aster_udp_inbox *inbox;
    struct aster_udp_outbox *outbox;
    struct aster_listener *listeners;
    struct aster_cid_table cids;
    struct aster_connection *dirty; /* to be written at the end of the round */
    int64_t resets_from_ns;         /* the second in which resets_left counts */
    unsigned resets_left;
};

static inline struct aster_endpoint *aster_endpoint_of(struct aster_transport *transport)
{
    return (struct aster_endpoint *)transport;
}

/* CLOCK_MONOTONIC of this round, as ngtcp2 wants it. */
static inline ngtcp2_tstamp aster_endpoint_now(const struct aster_endpoint *endpoint)
{
    return (ngtcp2_tstamp)aster_loop_now_ns(endpoint->transport.options.loop);
}

/* A datagram that belongs to no connection: begin one, ask for a proof of address, refuse, reset or ignore. (accept.c)
 */
void aster_endpoint_accept(struct aster_endpoint *endpoint, struct aster_listener *listener,
                           const struct aster_datagram *datagram);
/* Answer a packet of a connection that we do not know, so that its peer stops waiting at once. (accept.c) */
void aster_endpoint_reset(struct aster_endpoint *endpoint, struct aster_listener *listener,
                          const struct aster_datagram *datagram, const uint8_t *cid);
/* Offer the version that we speak. (accept.c) */
void aster_endpoint_offer_version(struct aster_endpoint *endpoint, struct aster_listener *listener,
                                  const struct aster_datagram *datagram, const ngtcp2_version_cid *ids);

#endif
