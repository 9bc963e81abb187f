/* What the command line has to do with grantors. Without ngtcp2 in the build, absent.c stands in for it and refuses. */
#ifndef CLI_GRANTOR_GRANTOR_H
#define CLI_GRANTOR_GRANTOR_H

#include "cli/command.h"

#define ASTER_GRANTOR_SCHEME "aster://"

/* Open "aster://[IDENTITY@]HOST:PORT[,...]" as the node of --node, ASTER_NODE or the default. A file roots.pem beside
 * the node's own makes it CA mode. Errors: as aster_grantor_open(); ASTER_ERR_UNSUPPORTED without grantors in this
 * build. */
aster_status aster_cli_grantor_open(const char *store, const char *node, struct aster_serializer **serializer,
                                    struct aster_error *error);

/* The identity that a grantor knows that node by. Errors: ASTER_ERR_IO, ASTER_ERR_INVALID, ASTER_ERR_UNSUPPORTED. */
aster_status aster_cli_grantor_identity(const char *node, char identity[ASTER_IDENTITY_MAX + 1],
                                        struct aster_error *error);

/* `aster node`: new NAME, show, id. Returns the exit status. */
int aster_cli_node(const struct aster_cli *cli, int argc, char **argv);

#endif
