/* A UDP relay between clients and one server that does what networks do: lose, go dark, change addresses. Its own
 * thread. */
#ifndef SUPPORT_QUIC_RELAY_H
#define SUPPORT_QUIC_RELAY_H

#include <pthread.h>
#include <stdatomic.h>

#include "platform/address.h"

struct quic_relay {
    struct aster_address address; /* where clients connect to */
    atomic_int loss_percent;      /* in each direction */
    atomic_bool dark;             /* everything is lost */
    atomic_bool rebind;           /* the server sees another source address from now on; unset when done */
    atomic_bool stop;
    atomic_uint forwarded;
    struct aster_address server;
    int near_fd;
    int far_fd;
    pthread_t thread;
};

void quic_relay_start(struct quic_relay *relay, const struct aster_address *server);
/* From now on to another server, from another source address. */
void quic_relay_move(struct quic_relay *relay, const struct aster_address *server);
void quic_relay_stop(struct quic_relay *relay); /* again: no effect */

#endif
