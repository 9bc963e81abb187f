/* `aster node`. */
#include "cli/command.h"
#include "cli/grantor/grantor.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    return aster_cli_node(cli, argc, argv);
}

const struct aster_command aster_command_node = {
    .name = "node",
    .summary = "Make or show the key by which grantors know this node",
    .operands = "new NAME|show|id",
    .operands_min = 1,
    .operands_max = 2,
    .words = "new show id",
    .storeless = true,
    .details =
        "A node is an Ed25519 key and a certificate that it signs itself; its id, the key in hexadecimal, is the\n"
        "holder of its leases at a grantor. `new` never overwrites a key. The files are in the directory of --node,\n"
        "else ASTER_NODE, else ~/.config/aster/node. With a file roots.pem beside them the node is known by its\n"
        "certificate's SPIFFE id instead, and believes servers that those roots vouch for.",
    .example = "aster node new worker-1",
    .options = options,
    .run = run,
};
