/* The relay between a test's client and its server. */
#ifndef SUPPORT_QUIC_RELAY_H
#define SUPPORT_QUIC_RELAY_H

#include "cli/grantor/relay.h"

/* aster_relay_start(), or the test fails. */
void quic_relay_start(struct aster_relay *relay, const struct aster_address *server);

#endif
