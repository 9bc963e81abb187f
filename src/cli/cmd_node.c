/* `aster node`. */
#include "cli/command.h"
#include "cli/grantor/grantor.h"

static const struct aster_node_arguments defaults = {.name = NULL};

#define OFFSET(member) offsetof(struct aster_node_arguments, member), NULL

static const struct aster_option options[] = {
    {"name", 0, ASTER_OPTION_TEXT, "NAME", "add: what people call it", OFFSET(name)},
    {"role", 0, ASTER_OPTION_TEXTS, "ROLE",
     "add: a role of it (several times for more); requires: the one that is needed", OFFSET(roles)},
    {"resources", 0, ASTER_OPTION_TEXTS, "PREFIX",
     "add: names that it may use and see begin so (several times for more)", OFFSET(resources)},
    {"replace", 0, ASTER_OPTION_FLAG, NULL, "add: also when it is admitted otherwise", OFFSET(replace)},
    {"add", 0, ASTER_OPTION_TEXTS, "ROLE", "role: give it this role", OFFSET(added)},
    {"drop", 0, ASTER_OPTION_TEXTS, "ROLE", "role: withdraw this one", OFFSET(dropped)},
    {"revoke", 0, ASTER_OPTION_FLAG, NULL, "remove: take every lease that it holds away first", OFFSET(revoke)},
    {"no-role", 0, ASTER_OPTION_FLAG, NULL, "requires: everybody who is admitted may", OFFSET(no_role)},
    ASTER_OPTION_END,
};

_Static_assert(sizeof(struct aster_node_arguments) <= ASTER_ARGUMENTS_MAX, "the arguments of `aster node` do not fit");

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    return aster_cli_node(cli, arguments, argc, argv);
}

const struct aster_command aster_command_node = {
    .name = "node",
    .summary = "Make this node's key, or say at a grantor which nodes are admitted",
    .operands = "new NAME|show|id|renew|list|add ID|role ID|remove ID|requires VERB",
    .operands_min = 1,
    .operands_max = 2,
    .words = "new show id renew list add role remove requires",
    .details =
        "A node is an Ed25519 key and a certificate that it signs itself; its id, the key in hexadecimal, is the\n"
        "holder of its leases at a grantor. `new` never overwrites a key; `renew` makes a new certificate under the "
        "same\n"
        "key, which who holds leases uses from its next connection on. The files are in the directory of --node,\n"
        "else ASTER_NODE, else ~/.config/aster/node. With a file roots.pem beside them the node is known by its\n"
        "certificate's SPIFFE id instead, and believes servers that those roots vouch for.\n"
        "\n"
        "list, add, role, remove and requires ask the grantor of --store, and need the role `operator` there. A "
        "change\n"
        "holds at once, is kept over restarts, and counts more than the server's configuration. Withdrawing a role or\n"
        "a node fences nobody: `aster node remove ID --revoke` does, and fences first.",
    .example = "aster node add $(ssh worker-1 aster node id) --name worker-1 --role worker",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
