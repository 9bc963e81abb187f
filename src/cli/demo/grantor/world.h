/* The world of the demo with a grantor: an asterd on a private port and directory, three nodes that it knows and one
 * that it does not, and a relay that is the network between worker A and asterd. One thread, but the relay's. */
#ifndef DEMO_GRANTOR_WORLD_H
#define DEMO_GRANTOR_WORLD_H

#include <sys/types.h>

#include "aster/serializer.h"
#include "cli/demo/acts.h"
#include "cli/grantor/relay.h"
#include "quic/node.h"

enum demo_node { DEMO_NODE_A, DEMO_NODE_B, DEMO_NODE_OPERATOR, DEMO_NODE_STRANGER, DEMO_NODES };

#define DEMO_ADDRESS_MAX (ASTER_NODE_ID_SIZE + ASTER_ADDRESS_TEXT_MAX)

struct demo_grantor {
    char directory[DEMO_PATH_MAX];
    char node[DEMO_NODES][ASTER_NODE_PATH_MAX]; /* directories */
    char id[DEMO_NODES][ASTER_NODE_ID_SIZE];
    char server_id[ASTER_NODE_ID_SIZE];
    pid_t pid;
    struct aster_address address;
    struct aster_relay relay;
    char direct[DEMO_ADDRESS_MAX];  /* "IDENTITY@HOST:PORT" of asterd .. */
    char relayed[DEMO_ADDRESS_MAX]; /* .. and through the relay */
};

/* Make the keys, write the configuration, start asterd and the relay. Errors: ASTER_ERR_IO with what asterd said last,
 * ASTER_ERR_INVALID (no asterd to be found). Close it also after an error. */
aster_status aster_demo_grantor_open(const struct demo_stage *stage, struct demo_grantor *grantor,
                                     struct aster_error *error);
/* Let asterd drain, and wait for it; its exit status, or -1. Kills it when it does not end in time. */
int aster_demo_grantor_close(struct demo_grantor *grantor);

/* A client of that node, past the relay. */
aster_status aster_demo_grantor_connect(const struct demo_grantor *grantor, enum demo_node node,
                                        struct aster_serializer **serializer, struct aster_error *error);

#endif
