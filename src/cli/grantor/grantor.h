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

struct aster_node_arguments {
    const char *name;
    struct aster_option_texts roles;
    struct aster_option_texts resources;
    struct aster_option_texts added;
    struct aster_option_texts dropped;
    bool replace;
    bool revoke;
    bool no_role;
};

/* `aster node`. Returns the exit status. */
int aster_cli_node(const struct aster_cli *cli, const struct aster_node_arguments *arguments, int argc, char **argv);

/* admit.c: what operators do. `operand` is the id or the verb; NULL for list. */
int aster_cli_node_list(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand);
int aster_cli_node_add(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand);
int aster_cli_node_role(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand);
int aster_cli_node_remove(const struct aster_cli *cli, const struct aster_node_arguments *arguments,
                          const char *operand);
int aster_cli_node_requires(const struct aster_cli *cli, const struct aster_node_arguments *arguments,
                            const char *operand);

#endif
