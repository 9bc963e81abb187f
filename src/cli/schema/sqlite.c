/* Aster's tables in a SQLite file, and the triggers that protect a user's table. */
#include "aster/sqlite.h"
#include "cli/postgres/postgres.h"
#include "cli/schema/schema.h"
#include "cli/schema/sqlite_file.h"
#include "cli/store.h"

/* The triggers that were asked for; NULL = none. The caller frees them. Returns an exit status. */
static int make_triggers(const struct aster_cli *cli, const struct aster_schema_arguments *arguments, char **triggers)
{
    struct aster_error error = ASTER_ERROR_INIT;
    *triggers = NULL;
    if (arguments->table != NULL && aster_sqlite_protect_sql(arguments->table, aster_text(arguments->resource),
                                                             arguments->row_column, triggers, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return ASTER_EXIT_OK;
}

static struct aster_schema_target target_of(const struct aster_schema_arguments *arguments)
{
    return (struct aster_schema_target){arguments->table, arguments->resource, arguments->row_column};
}

static int print(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    char *triggers;
    int code = make_triggers(cli, arguments, &triggers);
    if (code == ASTER_EXIT_OK) {
        fputs(aster_sqlite_schema(), stdout);
    }
    if (triggers != NULL) {
        printf("\n%s", triggers);
    }
    sqlite3_free(triggers);
    return code;
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
    if (aster_store_is_postgres(cli->store)) {
        return aster_cli_usage(cli, "the store is a PostgreSQL: say `aster schema ... postgres`");
    }
    if (aster_store_is_grantor(cli->store)) {
        return aster_cli_usage(cli, "the store is a grantor, which has no tables of yours: use --store sqlite:PATH");
    }
    return ASTER_EXIT_OK;
}

/* Opening the store makes its tables, or checks their version. */
static int open_store(const struct aster_cli *cli, enum aster_store_mode mode, struct aster_store_name *name)
{
    struct aster_serializer *serializer = NULL;
    int code = check_is_file(cli);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, mode, name, &serializer);
    }
    aster_serializer_destroy(serializer);
    return code;
}

static int apply(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    const struct aster_schema_target target = target_of(arguments);
    struct aster_store_name name;
    struct aster_error error = ASTER_ERROR_INIT;
    char *triggers;
    int code = make_triggers(cli, arguments, &triggers);
    if (code == ASTER_EXIT_OK) {
        code = open_store(cli, ASTER_STORE_CREATE, &name);
    }
    if (code == ASTER_EXIT_OK && triggers != NULL &&
        aster_schema_file_apply(name.path, &target, triggers, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    }
    sqlite3_free(triggers);
    return code == ASTER_EXIT_OK ? report(cli, &name, &target) : code;
}

static int verify(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    const struct aster_schema_target wanted = target_of(arguments);
    struct aster_store_name name;
    int code = open_store(cli, ASTER_STORE_MUST_EXIST, &name);
    return code == ASTER_EXIT_OK ? report(cli, &name, &wanted) : code;
}

const struct aster_schema_kind aster_schema_sqlite = {"sqlite", print, apply, verify};
