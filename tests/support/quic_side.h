/* One side of a connection under test: a node with its files, a loop, a transport, and a record of what happened. */
#ifndef SUPPORT_QUIC_SIDE_H
#define SUPPORT_QUIC_SIDE_H

#include <pthread.h>

#include "quic/transport.h"

struct quic_side {
    char directory[64];
    char id[ASTER_NODE_ID_SIZE];
    struct aster_loop *loop;
    struct aster_transport *transport;
    struct aster_address bound;
    bool echo; /* answer every frame with itself */
    bool admit_nobody;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned opened; /* under `lock` from here on */
    unsigned closed;
    unsigned refused;
    unsigned frames;
    size_t bytes;
    struct aster_link *link;               /* the last that opened, NULL after it closed */
    char identity[ASTER_IDENTITY_MAX + 1]; /* of its peer */
    char refused_identity[ASTER_IDENTITY_MAX + 1];
    char last_frame[256];
    size_t last_size;
    enum aster_link_end end; /* of the last that closed */
    struct aster_error error;
};

/* A fresh node in a temporary directory. */
void quic_side_init(struct quic_side *side, const char *name);
void quic_side_fini(struct quic_side *side);

/* Options for this side in key mode; change what the test needs, then open. `credentials` NULL loads the node's own. */
struct aster_transport_options quic_side_options(struct quic_side *side);
typedef aster_status (*quic_create)(const struct aster_transport_options *options, struct aster_transport **transport,
                                    struct aster_error *error);
void quic_side_open(struct quic_side *side, quic_create create, const struct aster_transport_options *options);
void quic_side_listen(struct quic_side *side, uint16_t port); /* on 127.0.0.1 */
void quic_side_close(struct quic_side *side);

/* Connect to a listening side; `expected` NULL expects nobody in particular. */
void quic_side_connect(struct quic_side *side, const struct aster_address *remote, const char *expected);
aster_status quic_side_send(struct quic_side *side, const void *data, size_t size);
void quic_side_shut(struct quic_side *side);
void quic_side_throttle(struct quic_side *side, bool throttled);
size_t quic_side_expel(struct quic_side *side, const char *identity);
struct aster_transport_counts quic_side_counts(struct quic_side *side);

/* Wait until *counter (one of the side's) is at least `value`; fails the test after 20 s. */
void quic_side_wait(struct quic_side *side, const unsigned *counter, unsigned value);

struct aster_address loopback_address(uint16_t port);

#endif
