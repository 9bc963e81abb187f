/* `aster forget`: remove the row of a resource that is not used any more. */
#include <inttypes.h>

#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    const char *authority;
};

static const struct arguments defaults = {NULL};

static const struct aster_option options[] = {
    {"as", 0, ASTER_OPTION_TEXT, "NAME", "who forgets, for the history (default: this process)",
     offsetof(struct arguments, authority), NULL},
    ASTER_OPTION_END,
};

static int forget(const struct aster_cli *cli, const struct aster_operation *operation)
{
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    code = aster_cli_call(cli, serializer, operation, &reply);
    if (code == ASTER_EXIT_OK && cli->json) {
        code = aster_json_print(aster_json_decision(&reply.decision), JSON_COMPACT, stdout);
    } else if (code == ASTER_EXIT_OK) {
        printf("forgotten, with its value: the next owner gets epoch %" PRId64 " or later\n", reply.decision.epoch + 1);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    const struct arguments *arguments = user;
    char storage[ASTER_HOLDER_SIZE];
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    operation.kind = ASTER_OP_FORGET;
    operation.resource = aster_text(argv[0]);
    if (aster_holder_resolve(cli, arguments->authority, storage, &operation.caller, &error) != ASTER_OK ||
        aster_resource_check(operation.resource, &error) != ASTER_OK ||
        aster_identity_check(operation.caller, "authority", &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return forget(cli, &operation);
}

const struct aster_command aster_command_forget = {
    .name = "forget",
    .summary = "Remove a free resource and its value from the store",
    .operands = "RESOURCE",
    .operands_min = 1,
    .operands_max = 1,
    .details = "Its epochs are never used again: whoever acquires it later gets a higher one, and old fences stay "
               "stale.\nA resource that is held, even past its ttl, is not forgotten (77): release or revoke it first.",
    .example = "aster forget nightly-report",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
