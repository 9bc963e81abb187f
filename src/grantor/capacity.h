/* How many connections this process can carry. */
#ifndef GRANTOR_CAPACITY_H
#define GRANTOR_CAPACITY_H

#include "quic/transport.h"

/* A TCP connection costs a descriptor: raise the limit, and where it is low still, allow no more connections and
 * handshakes than leave enough for everything else, with a line in the log. */
void grantor_capacity_fit(struct aster_transport_options *options);

#endif
