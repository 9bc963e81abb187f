/* `aster schema print|apply|verify KIND`: Aster's part in a user's store, and what protects the user's data there. */
#include <string.h>

#include "cli/schema/schema.h"

static const struct aster_schema_kind *const kinds[] = {&aster_schema_sqlite, &aster_schema_postgres,
                                                        &aster_schema_redis};

static const struct aster_schema_arguments defaults = {NULL, NULL, NULL, NULL, NULL};

static const struct aster_option options[] = {
    {"protect", 'p', ASTER_OPTION_TEXT, "TABLE", "the triggers that let only the current fence write TABLE",
     offsetof(struct aster_schema_arguments, table), NULL},
    {"resource", 'r', ASTER_OPTION_TEXT, "NAME", "the resource whose fence that is",
     offsetof(struct aster_schema_arguments, resource), NULL},
    {"row-column", 'k', ASTER_OPTION_TEXT, "COLUMN",
     "every row has its own resource: NAME followed by the row's COLUMN",
     offsetof(struct aster_schema_arguments, row_column), NULL},
    {"expression", 'e', ASTER_OPTION_TEXT, "SQL",
     "postgres: every row has the resource that this expression over its columns gives",
     offsetof(struct aster_schema_arguments, expression), NULL},
    {"to", 't', ASTER_OPTION_TEXT, "URL", "which Redis: redis://[USER@]HOST[:PORT] or redis-socket:PATH",
     offsetof(struct aster_schema_arguments, to), NULL},
    ASTER_OPTION_END,
};

static const struct aster_schema_kind *find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name) == 0) {
            return kinds[i];
        }
    }
    return NULL;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    const struct aster_schema_arguments *arguments = user;
    const struct aster_schema_kind *kind = find(argv[1]);
    if (kind == NULL) {
        return aster_cli_usage(cli, "there are schemas for sqlite, postgres and redis");
    }
    if (arguments->expression != NULL && kind != &aster_schema_postgres) {
        return aster_cli_usage(cli, "--expression SQL is for postgres: use --resource NAME --row-column COLUMN");
    }
    if ((arguments->table == NULL) != (arguments->resource == NULL && arguments->expression == NULL)) {
        return aster_cli_usage(cli, "--protect TABLE and --resource NAME belong together");
    }
    if (arguments->row_column != NULL && arguments->resource == NULL) {
        return aster_cli_usage(cli, "--row-column COLUMN goes with --protect TABLE and --resource NAME");
    }
    if (strcmp(argv[0], "print") == 0) {
        return kind->print(cli, arguments);
    }
    if (strcmp(argv[0], "apply") == 0) {
        return kind->apply(cli, arguments);
    }
    if (strcmp(argv[0], "verify") == 0) {
        return kind->verify(cli, arguments);
    }
    return aster_cli_usage(cli, "a schema can be printed, applied or verified");
}

const struct aster_command aster_command_schema = {
    .name = "schema",
    .summary = "Print, apply or verify the SQL of a store and of protected tables",
    .operands = "print|apply|verify sqlite|postgres|redis",
    .operands_min = 2,
    .operands_max = 2,
    .words = "print apply verify",
    .details =
        "With --row-column, each row is a resource: `--resource invoice/ --row-column id` asks for the fence of\n"
        "invoice/42 when the row with id 42 is written. verify exits 1 when a trigger of a protected table is missing "
        "or was altered, or when a write can go round it.",
    .example = "aster schema print sqlite --protect invoice --resource billing | sqlite3 shop.db",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
