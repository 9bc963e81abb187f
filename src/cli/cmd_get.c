/* `aster get`: the fenced value of a resource. */
#include <inttypes.h>

#include "base/error.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int print_json(const struct aster_snapshot *row)
{
    json_t *value = row->value_revision > 0 ? aster_json_bytes(row->value) : json_null();
    return aster_json_print(json_pack("{s:o, s:o, s:I, s:I}", "resource", aster_json_bytes(row->resource), "value",
                                      value, "value_revision", (json_int_t)row->value_revision, "epoch",
                                      (json_int_t)row->epoch),
                            JSON_COMPACT, stdout);
}

static int print(const struct aster_cli *cli, const struct aster_snapshot *row)
{
    int code = ASTER_EXIT_OK;
    if (cli->json) {
        code = print_json(row);
    } else if (row->value.size > 0 && fwrite(row->value.data, 1, row->value.size, stdout) != row->value.size) {
        code = ASTER_EXIT_IO;
    }
    if (code == ASTER_EXIT_OK && row->value_revision == 0) {
        char shown[ASTER_PRINTABLE_MAX];
        fprintf(stderr, "aster get: %s has no value; `aster list` shows what there is\n",
                aster_printable(row->resource, shown));
        return ASTER_EXIT_FAILED;
    }
    return code;
}

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
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
    } else {
        code = print(cli, &reply.decision.snapshot);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

const struct aster_command aster_command_get = {
    .name = "get",
    .summary = "Print the fenced value of a resource, byte for byte",
    .operands = "[RESOURCE]",
    .operands_max = 1,
    .details =
        "With --json the value is a string, or {\"base64\": ...} when it is not UTF-8; its revision is beside it.\n"
        "Exits 1 when nobody put a value.",
    .example = "aster get nightly-report",
    .options = options,
    .run = run,
};
