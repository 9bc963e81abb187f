/* A UDP relay between clients and one server on this machine that does what networks do: lose, go dark in one direction
 * or both, change addresses. It needs no privileges. For the demo and for tests; its own thread. */
#ifndef CLI_GRANTOR_RELAY_H
#define CLI_GRANTOR_RELAY_H

#include <pthread.h>
#include <stdatomic.h>

#include "platform/address.h"

enum aster_relay_way { ASTER_RELAY_TO_SERVER = 1, ASTER_RELAY_TO_CLIENT = 2, ASTER_RELAY_BOTH_WAYS = 3 };

struct aster_relay {
    struct aster_address address; /* where clients connect to: a port of 127.0.0.1 */
    atomic_int dark;              /* the aster_relay_way in which everything is lost; 0 = none */
    atomic_int loss_percent;      /* each way */
    atomic_bool rebind;           /* the server sees another source address from now on; unset when done */
    atomic_bool stop;
    atomic_uint forwarded; /* datagrams */
    struct aster_address server;
    int near_fd;
    int far_fd;
    bool started;
    pthread_t thread;
};

/* Relay to the server's IPv4 address, for the client that was heard last. Errors: ASTER_ERR_IO. */
aster_status aster_relay_start(struct aster_relay *relay, const struct aster_address *server,
                               struct aster_error *error);
/* From now on to another server, from another source address. */
void aster_relay_move(struct aster_relay *relay, const struct aster_address *server);
void aster_relay_stop(struct aster_relay *relay); /* again, or on a zeroed relay: no effect */

#endif
