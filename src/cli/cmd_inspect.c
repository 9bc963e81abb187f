/* `aster inspect`: one row. */
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_bytes resource;
    int code = aster_resource_resolve(cli, argc > 0 ? argv[0] : NULL, &resource);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    }
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_inspect(serializer, resource, &reply, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else if (cli->json) {
        code = aster_json_print(aster_json_snapshot(&reply.decision.snapshot), JSON_COMPACT, stdout);
    } else {
        aster_print_snapshot(&reply.decision.snapshot, stdout);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

const struct aster_command aster_command_inspect = {
    .name = "inspect",
    .summary = "Show who holds a resource, since when and for how long",
    .operands = "[RESOURCE]",
    .operands_max = 1,
    .details = "What it shows is old the moment you read it: never decide a write by it. The fence does that.",
    .example = "aster inspect nightly-report",
    .options = options,
    .run = run,
};
