/* A running grantor. Called from the main thread. */
#ifndef GRANTOR_SERVER_H
#define GRANTOR_SERVER_H

#include "grantor/settings.h"

struct grantor_server;

/* Would the key and the certificates do? Errors: those of the node's files. */
aster_status grantor_server_check(const struct grantor_settings *settings, struct aster_error *error);

/* Open the store, listen, serve. Takes the settings over when it succeeds. Errors: those of the store, the node's files
 * and the sockets. */
aster_status grantor_server_start(struct grantor_settings *settings, struct grantor_server **server,
                                  struct aster_error *error);

/* Nodes, roles, requires, in-flight-max and the certificate from now on as in `settings`, which are taken over when it
 * succeeds; peers that are no longer admitted are cut off; leases stay. The store and the addresses need a restart.
 * Errors: those of the node's files; nothing changes then. */
aster_status grantor_server_reload(struct grantor_server *server, struct grantor_settings *settings,
                                   struct aster_error *error);

/* Take no more requests, answer what is in flight, close every link. Bounded: 10 s and a little. Then free. */
void grantor_server_stop(struct grantor_server *server);

#endif
