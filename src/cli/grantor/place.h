/* Where a node's files are. */
#ifndef CLI_GRANTOR_PLACE_H
#define CLI_GRANTOR_PLACE_H

#include "aster/status.h"
#include "quic/node.h"

struct aster_node_place {
    char directory[ASTER_NODE_PATH_MAX];
    char roots[ASTER_NODE_PATH_MAX + 16]; /* empty = key mode */
};

/* `node`, else ASTER_NODE, else XDG_CONFIG_HOME/aster/node, else ~/.config/aster/node. Errors: ASTER_ERR_INVALID. */
aster_status aster_node_place_find(const char *node, struct aster_node_place *place, struct aster_error *error);

#endif
