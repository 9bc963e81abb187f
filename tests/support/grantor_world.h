/* A server and three clients of it: `a` and `b` over QUIC, without a role, and the operator `op` over TCP. */
#ifndef SUPPORT_GRANTOR_WORLD_H
#define SUPPORT_GRANTOR_WORLD_H

#include "support/grantor_client.h"
#include "support/grantor_process.h"

struct grantor_world {
    struct grantor_process server;
    struct grantor_client a;
    struct grantor_client b;
    struct grantor_client op;
};

/* Files only; `journal` as in grantor_process. */
void grantor_world_init(struct grantor_world *world, const char *journal);
void grantor_world_fini(struct grantor_world *world);
/* Write the configuration: all three nodes, `of_b` inside the section of b, `rest` at the end. */
void grantor_world_configure(struct grantor_world *world, const char *of_b, const char *rest);
/* Start the server, connect everybody. */
void grantor_world_start(struct grantor_world *world);

/* Wait until the server has so many connections: it has noticed who came and who left. Needs "http". */
void grantor_world_await_connections(struct grantor_world *world, size_t count);

/* Acquire, which must be granted; the epoch. */
int64_t grantor_world_take(struct grantor_client *client, const char *resource, int64_t ttl_ms);

#define assert_granted(decision) assert_string_equal(aster_reason_name((decision)->reason), "NONE")
#define assert_denied(decision, why) assert_string_equal(aster_reason_name((decision)->reason), why)

#endif
