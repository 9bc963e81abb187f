/* `aster list`: every row. */
#include <inttypes.h>

#include "base/error.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    bool held;
};

static const struct arguments defaults = {false};

static const struct aster_option options[] = {
    {"held", 0, ASTER_OPTION_FLAG, NULL, "only resources that somebody holds", offsetof(struct arguments, held), NULL},
    ASTER_OPTION_END,
};

struct listing {
    bool only_held;
    json_t *json; /* array, or NULL for a table */
    struct aster_text_table table;
    bool failed;
};

static bool visit(const struct aster_snapshot *row, void *user)
{
    struct listing *listing = user;
    if (listing->only_held && !row->held) {
        return true;
    }
    if (listing->json != NULL) {
        listing->failed = json_array_append_new(listing->json, aster_json_snapshot(row)) != 0;
        return !listing->failed;
    }
    char resource[ASTER_RESOURCE_MAX + 1];
    char holder[ASTER_IDENTITY_MAX + 1];
    char epoch[24];
    char revision[24];
    char since[ASTER_TEXT_MAX];
    char remaining[ASTER_TEXT_MAX];
    snprintf(resource, sizeof resource, "%.*s", (int)row->resource.size, (const char *)row->resource.data);
    snprintf(holder, sizeof holder, "%.*s", row->held ? (int)row->holder.size : 1,
             row->held ? (const char *)row->holder.data : "-");
    snprintf(epoch, sizeof epoch, "%" PRId64, row->epoch);
    snprintf(revision, sizeof revision, "%" PRId64, row->value_revision);
    const char *const cells[] = {resource,
                                 holder,
                                 epoch,
                                 row->held ? aster_text_since(row->since_unix_ms, since) : "-",
                                 !row->held               ? "-"
                                 : row->remaining_ns == 0 ? "expired"
                                                          : aster_text_seconds(row->remaining_ns, remaining),
                                 revision};
    listing->failed = aster_text_table_add(&listing->table, sizeof cells / sizeof cells[0], cells) != ASTER_OK;
    return !listing->failed;
}

static int print(const struct aster_cli *cli, struct listing *listing)
{
    if (cli->json) {
        json_t *json = listing->json;
        listing->json = NULL;
        return aster_json_print(json, JSON_INDENT(1), stdout);
    }
    aster_text_table_print(&listing->table, stdout);
    return ASTER_EXIT_OK;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    static const char *const heading[] = {"RESOURCE", "HOLDER", "EPOCH", "SINCE", "REMAINING", "VALUE REVISION"};
    const struct arguments *arguments = user;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    struct listing listing = {arguments->held, cli->json ? json_array() : NULL, {NULL, 0, 0, 0}, false};
    listing.failed =
        !cli->json && aster_text_table_add(&listing.table, sizeof heading / sizeof heading[0], heading) != ASTER_OK;
    aster_status status = ASTER_OK;
    if (!listing.failed) {
        status = aster_list(serializer, aster_text(argc > 0 ? argv[0] : NULL), visit, &listing, &error);
    }
    if (status == ASTER_OK && listing.failed) {
        status = aster_error_set(&error, ASTER_ERR_NOMEM, "out of memory for the list: give a PREFIX");
    }
    code = status == ASTER_OK ? print(cli, &listing) : aster_cli_fail(cli, &error);
    json_decref(listing.json);
    aster_text_table_free(&listing.table);
    aster_serializer_destroy(serializer);
    return code;
}

const struct aster_command aster_command_list = {
    .name = "list",
    .summary = "Show every resource, or those whose name begins with PREFIX",
    .operands = "[PREFIX]",
    .operands_max = 1,
    .example = "aster list invoice/ --held",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
