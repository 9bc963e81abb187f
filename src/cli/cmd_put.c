/* `aster put`: store the fenced value of a resource. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    struct aster_carried_options carried;
    const char *file;
    int64_t revision;
};

static const struct arguments defaults = {ASTER_CARRIED_OPTIONS_INIT, NULL, -1};

static const struct aster_option options[] = {
    ASTER_CARRIED_OPTION_ROWS(struct arguments),
    {"file", 0, ASTER_OPTION_TEXT, "PATH", "read the value from a file (default: standard input)",
     offsetof(struct arguments, file), NULL},
    {"revision", 'r', ASTER_OPTION_COUNT, "N", "only if the value still has this revision (default: the current one)",
     offsetof(struct arguments, revision), NULL},
    ASTER_OPTION_END,
};

/* One byte more than allowed, so that a longer value is noticed and not cut. */
static aster_status read_value(const char *path, char *buffer, size_t size, struct aster_bytes *value,
                               struct aster_error *error)
{
    FILE *in = path != NULL ? fopen(path, "rb") : stdin;
    char shown[ASTER_PRINTABLE_MAX];
    const char *name = path != NULL ? aster_printable(aster_text(path), shown) : "standard input";
    if (in == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot open %s", name);
    }
    size_t used = fread(buffer, 1, size, in);
    aster_status status = ASTER_OK;
    if (ferror(in)) {
        status = aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot read %s", name);
    } else if (used > ASTER_VALUE_MAX) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "the value is longer than value_max %d bytes: store it elsewhere and its name here",
                                 ASTER_VALUE_MAX);
    }
    if (path != NULL) {
        fclose(in);
    }
    *value = (struct aster_bytes){buffer, used};
    return status;
}

/* Without --revision: the revision of this moment. The fence protects against others; only the same holder's own
 * concurrent puts need --revision. */
static aster_status expected_revision(struct aster_serializer *serializer, struct aster_bytes resource, int64_t given,
                                      int64_t *revision, struct aster_error *error)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    if (given >= 0) {
        *revision = given;
        return ASTER_OK;
    }
    aster_status status = aster_inspect(serializer, resource, &reply, error);
    if (status == ASTER_OK) {
        *revision = reply.decision.snapshot.value_revision;
    }
    aster_reply_fini(&reply);
    return status;
}

static int put(const struct aster_cli *cli, const struct arguments *arguments, const struct aster_fence *fence,
               struct aster_bytes value)
{
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t revision = 0;
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    aster_status status = expected_revision(serializer, fence->resource, arguments->revision, &revision, &error);
    if (status == ASTER_OK) {
        status = aster_put(serializer, fence, fence->holder, revision, value, &reply, &error);
    }
    if (status != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else if (reply.decision.outcome == ASTER_DENIED) {
        code = aster_cli_denied(cli, &reply.decision, fence->holder, ASTER_EXIT_REFUSED);
    } else if (cli->json) {
        code = aster_json_print(aster_json_decision(&reply.decision), JSON_COMPACT, stdout);
    } else {
        printf("stored: revision %" PRId64 " under epoch %" PRId64 "\n", reply.decision.snapshot.value_revision,
               reply.decision.epoch);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    const struct arguments *arguments = user;
    struct aster_carried carried;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_bytes value = aster_text(argc > 1 ? argv[1] : NULL);
    int code = aster_carried_resolve(cli, argc > 0 ? argv[0] : NULL, &arguments->carried, &carried);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (argc > 1) {
        return arguments->file != NULL ? aster_cli_usage(cli, "give VALUE or --file, not both")
                                       : put(cli, arguments, &carried.fence, value);
    }
    char *buffer = malloc(ASTER_VALUE_MAX + 1);
    if (buffer == NULL) {
        aster_error_set(&error, ASTER_ERR_NOMEM, "out of memory for the value");
        return aster_cli_fail(cli, &error);
    }
    if (read_value(arguments->file, buffer, ASTER_VALUE_MAX + 1, &value, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else {
        code = put(cli, arguments, &carried.fence, value);
    }
    free(buffer);
    return code;
}

const struct aster_command aster_command_put = {
    .name = "put",
    .summary = "Store the fenced value of a resource, under the current fence only",
    .operands = "[RESOURCE [VALUE]]",
    .operands_max = 2,
    .details =
        "The fence is checked in the same step as the write: after somebody else was granted it is refused (77).\n"
        "Under `aster run` resource, holder, epoch and store come from the environment.",
    .example = "aster run nightly-report -- sh -c 'date | aster put'",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
