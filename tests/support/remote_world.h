/* A grantor in the test's process, one client of it, and the network between them. */
#ifndef SUPPORT_REMOTE_WORLD_H
#define SUPPORT_REMOTE_WORLD_H

#include "support/quic_relay.h"
#include "support/remote_grantor.h"

struct remote_world {
    struct remote_grantor grantor;
    struct remote_client client; /* its files; open it over one of the ways below */
    struct aster_relay relay;    /* of open_through_relay() */
    struct aster_reply reply;    /* of the last call */
    struct aster_error error;
};

/* The grantor serves QUIC; the client is not opened yet. */
void remote_world_init(struct remote_world *world);
void remote_world_fini(struct remote_world *world);

/* Open the client, straight to the grantor or through the relay, which can go dark. A silent connection is given up
 * after 600 ms. */
void remote_world_open(struct remote_world *world);
void remote_world_open_through_relay(struct remote_world *world);

/* An operation on "catalog" by the client; acquire with a ttl of 30 s. */
struct aster_operation remote_world_operation(struct remote_world *world, enum aster_operation_kind kind,
                                              int64_t epoch);
aster_status remote_world_call(struct remote_world *world, const struct aster_operation *operation, int64_t timeout_ms);
/* The test fails unless it is granted within ten seconds, with this epoch. */
void remote_world_expect(struct remote_world *world, const struct aster_operation *operation, int64_t epoch);

#endif
