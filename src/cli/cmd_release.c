/* `aster release`: free the resource now. */
#include <inttypes.h>

#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    struct aster_carried_options carried;
};

static const struct arguments defaults = {ASTER_CARRIED_OPTIONS_INIT};

static const struct aster_option options[] = {ASTER_CARRIED_OPTION_ROWS(struct arguments), ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    const struct arguments *arguments = user;
    struct aster_carried carried;
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    int code = aster_carried_resolve(cli, argc > 0 ? argv[0] : NULL, &arguments->carried, &carried);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    }
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    operation.kind = ASTER_OP_RELEASE;
    operation.resource = carried.fence.resource;
    operation.caller = carried.fence.holder;
    operation.epoch = carried.fence.epoch;
    code = aster_cli_call(cli, serializer, &operation, &reply);
    if (code == ASTER_EXIT_OK && cli->json) {
        code = aster_json_print(aster_json_decision(&reply.decision), JSON_COMPACT, stdout);
    } else if (code == ASTER_EXIT_OK) {
        printf("released: the next owner gets epoch %" PRId64 " or later\n", reply.decision.epoch + 1);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

const struct aster_command aster_command_release = {
    .name = "release",
    .summary = "Give up a lease that you acquired",
    .operands = "[RESOURCE]",
    .operands_max = 1,
    .example = "aster release nightly-report --holder w1 --epoch 7",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
