/* UDP sockets with batching: recvmmsg with GRO where the kernel has it, sendmmsg with GSO where it has that. One
 * thread. */
#ifndef PLATFORM_UDP_H
#define PLATFORM_UDP_H

#include "platform/address.h"

struct aster_udp {
    int fd;
    struct aster_address local; /* as bound: the address may be the wildcard */
    bool connected;
    bool gso;
};

/* One received datagram; `data` lives until the next receive on the same batch. */
struct aster_datagram {
    struct aster_address remote;
    struct aster_address local; /* which of our addresses it came to */
    const unsigned char *data;
    size_t size;
    uint8_t ecn; /* 0..3 */
};

/* A socket bound to `local` (port 0 = any). Errors: ASTER_ERR_IO. */
aster_status aster_udp_listen(const struct aster_address *local, struct aster_udp *udp, struct aster_error *error);
/* A socket that only speaks with `remote`. Errors: ASTER_ERR_IO, ASTER_ERR_UNREACHABLE (no route). */
aster_status aster_udp_connect(const struct aster_address *remote, struct aster_udp *udp, struct aster_error *error);
void aster_udp_close(struct aster_udp *udp);

struct aster_udp_inbox;                               /* memory for one batch; can serve many sockets in turn */
struct aster_udp_inbox *aster_udp_inbox_create(void); /* NULL when out of memory */
void aster_udp_inbox_destroy(struct aster_udp_inbox *inbox);

/* Receive one batch and give each datagram to `handle`. Returns the number of messages that the kernel gave, 0 when
 * nothing waits, or the negative errno (for example -ECONNREFUSED on a connected socket). */
int aster_udp_receive(const struct aster_udp *udp, struct aster_udp_inbox *inbox,
                      void (*handle)(const struct aster_datagram *datagram, void *user), void *user);

struct aster_udp_outbox;                                /* datagrams to be sent, possibly through several sockets */
struct aster_udp_outbox *aster_udp_outbox_create(void); /* NULL when out of memory */
void aster_udp_outbox_destroy(struct aster_udp_outbox *outbox);

#define ASTER_UDP_PAYLOAD_MAX 1452 /* bytes of one datagram: an Ethernet frame over IPv6 */

/* Room for one datagram of ASTER_UDP_PAYLOAD_MAX bytes; sends what is queued when there is none left. */
unsigned char *aster_udp_outbox_reserve(struct aster_udp_outbox *outbox);
/* Queue the first `size` bytes of what was reserved. `local` and `udp` as for the peer's path; the socket must stay
 * open until the flush. */
void aster_udp_outbox_add(struct aster_udp_outbox *outbox, struct aster_udp *udp, const struct aster_address *local,
                          const struct aster_address *remote, uint8_t ecn, size_t size);
/* Send everything. What the kernel does not take is dropped, as a network would: QUIC sends it again. */
void aster_udp_outbox_flush(struct aster_udp_outbox *outbox);

/* Datagrams sent and system calls made, for benchmarks. */
void aster_udp_outbox_counts(const struct aster_udp_outbox *outbox, uint64_t *datagrams, uint64_t *calls);

#endif
