/* `aster publish`: replace a file under the current fence. */
#include <inttypes.h>

#include "aster/publish.h"
#include "base/error.h"
#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    struct aster_carried_options carried;
    const char *to;
};

static const struct arguments defaults = {ASTER_CARRIED_OPTIONS_INIT, NULL};

static const struct aster_option options[] = {
    ASTER_CARRIED_OPTION_ROWS(struct arguments),
    {"to", 't', ASTER_OPTION_TEXT, "PATH", "the file to replace", offsetof(struct arguments, to), NULL},
    ASTER_OPTION_END,
};

static int report(const struct aster_cli *cli, const char *to, const struct aster_fence *fence,
                  const struct aster_publication *publication)
{
    char shown[ASTER_PRINTABLE_MAX];
    const struct aster_verdict *verdict = &publication->verdict;
    bool published = verdict->reason == ASTER_REASON_NONE;
    int code = published ? ASTER_EXIT_OK : ASTER_EXIT_REFUSED;
    if (cli->json) {
        int failed = aster_json_print(json_pack("{s:b, s:s, s:s?, s:I, s:I, s:b}", "published", published, "path", to,
                                                "reason", published ? NULL : aster_reason_name(verdict->reason),
                                                "carried_epoch", (json_int_t)verdict->carried_epoch, "current_epoch",
                                                (json_int_t)verdict->current_epoch, "in_step", publication->in_step),
                                      JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    aster_printable(aster_text(to), shown);
    if (published) {
        printf("published: %s under epoch %" PRId64 "%s\n", shown, fence->epoch,
               publication->in_step ? "" : " (the store's row was looked at just before)");
        return code;
    }
    fprintf(stderr,
            "aster publish: %s: %s was left as it is: the fence carries epoch %" PRId64 ", current is %" PRId64
            "; stop, or acquire again\n",
            aster_reason_name(verdict->reason), shown, verdict->carried_epoch, verdict->current_epoch);
    return code;
}

static int publish(const struct aster_cli *cli, const char *file, const char *to, const struct aster_fence *fence)
{
    struct aster_publish_options how = ASTER_PUBLISH_OPTIONS_INIT;
    struct aster_publication publication;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &how.serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_publish_file(file, to, fence, fence->holder, &how, &publication, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else {
        code = report(cli, to, fence, &publication);
    }
    aster_serializer_destroy(how.serializer);
    return code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    const struct arguments *arguments = user;
    struct aster_carried carried;
    if (arguments->to == NULL) {
        return aster_cli_usage(cli, "--to PATH is missing: which file is to be replaced?");
    }
    /* With one operand it is the file, as under `aster run` the resource is in the environment. */
    int code = aster_carried_resolve(cli, argc > 1 ? argv[0] : NULL, &arguments->carried, &carried);
    return code == ASTER_EXIT_OK ? publish(cli, argv[argc - 1], arguments->to, &carried.fence) : code;
}

const struct aster_command aster_command_publish = {
    .name = "publish",
    .summary = "Replace a file atomically, under the current fence only",
    .operands = "[RESOURCE] FILE",
    .operands_min = 1,
    .operands_max = 2,
    .details =
        "FILE (/dev/stdin for a pipe) is copied beside PATH, made durable and renamed to PATH. The epoch stays in\n"
        "PATH.fence, and an older one is refused (77) ever after. With a store in a file the check and the rename are\n"
        "one step of that store; with a grantor its row is looked at just before. Under `aster run` resource, holder,\n"
        "epoch and store come from the environment.",
    .example = "aster run catalog -- sh -c 'make-catalog > new && aster publish new --to /srv/catalog.json'",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
