/* `aster schema print|apply|verify sqlite`: Aster's tables and the triggers that protect a user's table. */
#include <string.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "cli/schema_file.h"
#include "cli/store.h"

struct arguments {
    const char *table;
    const char *resource;
    const char *row_column;
};

static const struct arguments defaults = {NULL, NULL, NULL};

static const struct aster_option options[] = {
    {"protect", 'p', ASTER_OPTION_TEXT, "TABLE", "the triggers that let only the current fence write TABLE",
     offsetof(struct arguments, table), NULL},
    {"resource", 'r', ASTER_OPTION_TEXT, "NAME", "the resource whose fence that is",
     offsetof(struct arguments, resource), NULL},
    {"row-column", 'k', ASTER_OPTION_TEXT, "COLUMN",
     "every row has its own resource: NAME followed by the row's COLUMN", offsetof(struct arguments, row_column), NULL},
    ASTER_OPTION_END,
};

static int print_schema(const struct aster_cli *cli, const char *triggers)
{
    (void)cli;
    fputs(aster_sqlite_schema(), stdout);
    if (triggers != NULL) {
        printf("\n%s", triggers);
    }
    return ASTER_EXIT_OK;
}

/* Say what is protected now: every table, or the one that was asked for. */
static int report(const struct aster_cli *cli, const struct aster_store_name *name,
                  const struct aster_schema_target *wanted)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_schema_report report = {.json = cli->json ? json_array() : NULL};
    if (aster_schema_file_verify(name->path, wanted, &report, &error) != ASTER_OK) {
        json_decref(report.json);
        return aster_cli_fail(cli, &error);
    }
    int code = ASTER_EXIT_OK;
    if (cli->json) {
        code = aster_json_print(
            json_pack("{s:s, s:b, s:o}", "store", name->text, "intact", report.broken == 0, "tables", report.json),
            JSON_COMPACT, stdout);
    } else {
        printf("OK    Aster's tables are of the right version\n");
        if (report.checked == 0) {
            printf(
                "OK    no table is protected; `aster schema apply sqlite --protect TABLE --resource NAME` does it\n");
        }
    }
    return code != ASTER_EXIT_OK ? code : report.broken == 0 ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
}

static int check_is_file(const struct aster_cli *cli)
{
    if (aster_store_is_grantor(cli->store)) {
        return aster_cli_usage(cli, "the store is a grantor, which has no tables of yours: use --store sqlite:PATH");
    }
    return ASTER_EXIT_OK;
}

/* Opening the store makes its tables. */
static int apply(const struct aster_cli *cli, const struct aster_schema_target *target, const char *triggers)
{
    struct aster_store_name name;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = check_is_file(cli);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, ASTER_STORE_CREATE, &name, &serializer);
    }
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    aster_serializer_destroy(serializer);
    if (triggers != NULL && aster_schema_file_apply(name.path, target, triggers, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return report(cli, &name, target);
}

/* Opening the store checks the version of its tables. */
static int verify(const struct aster_cli *cli, const struct aster_schema_target *wanted)
{
    struct aster_store_name name;
    struct aster_serializer *serializer = NULL;
    int code = check_is_file(cli);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, &name, &serializer);
    }
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    aster_serializer_destroy(serializer);
    return report(cli, &name, wanted);
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    const struct arguments *arguments = user;
    struct aster_error error = ASTER_ERROR_INIT;
    char *triggers = NULL;
    if (strcmp(argv[1], "sqlite") != 0) {
        return aster_cli_usage(cli, "this build has a schema for sqlite only");
    }
    if ((arguments->table == NULL) != (arguments->resource == NULL)) {
        return aster_cli_usage(cli, "--protect TABLE and --resource NAME belong together");
    }
    if (arguments->row_column != NULL && arguments->table == NULL) {
        return aster_cli_usage(cli, "--row-column COLUMN goes with --protect TABLE and --resource NAME");
    }
    if (arguments->table != NULL && aster_sqlite_protect_sql(arguments->table, aster_text(arguments->resource),
                                                             arguments->row_column, &triggers, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    const struct aster_schema_target target = {arguments->table, arguments->resource, arguments->row_column};
    int code;
    if (strcmp(argv[0], "print") == 0) {
        code = print_schema(cli, triggers);
    } else if (strcmp(argv[0], "apply") == 0) {
        code = apply(cli, &target, triggers);
    } else if (strcmp(argv[0], "verify") == 0) {
        code = verify(cli, &target);
    } else {
        code = aster_cli_usage(cli, "a schema can be printed, applied or verified");
    }
    sqlite3_free(triggers);
    return code;
}

const struct aster_command aster_command_schema = {
    .name = "schema",
    .summary = "Print, apply or verify the SQL of a store and of protected tables",
    .operands = "print|apply|verify sqlite",
    .operands_min = 2,
    .operands_max = 2,
    .words = "print apply verify",
    .details =
        "With --row-column, each row is a resource: `--resource invoice/ --row-column id` asks for the fence of\n"
        "invoice/42 when the row with id 42 is written. verify exits 1 when a trigger of a protected table is missing "
        "or was altered.",
    .example = "aster schema print sqlite --protect invoice --resource billing | sqlite3 shop.db",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
