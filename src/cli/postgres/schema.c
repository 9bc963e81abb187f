/* Aster's schema in a PostgreSQL database, and the triggers that protect a user's table there. */
#include <string.h>

#include "aster/postgres.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli/output.h"
#include "cli/postgres/postgres.h"
#include "cli/schema/schema.h"

static int check_arguments(const struct aster_cli *cli, const struct aster_schema_arguments *arguments,
                           bool needs_store)
{
    if (arguments->to != NULL) {
        return aster_cli_usage(cli,
                               "--to is for Redis: name the database with --store postgresql://USER@HOST/DATABASE");
    }
    if (arguments->expression != NULL && arguments->resource != NULL) {
        return aster_cli_usage(cli, "--resource NAME and --expression SQL exclude each other");
    }
    if (needs_store && !aster_store_is_postgres(cli->store)) {
        return aster_cli_usage(cli, "which database? Name it with --store postgresql://USER@HOST/DATABASE");
    }
    return ASTER_EXIT_OK;
}

static void print_literal(const char *text)
{
    const char *escapes = strchr(text, '\\') != NULL ? "E" : "";
    printf("%s'", escapes);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            putchar(*text);
        }
        putchar(*text);
    }
    printf("'");
}

/* Each row's resource: `resource` followed by a column, as an expression that the server puts together. */
static void print_protection(const struct aster_schema_arguments *arguments)
{
    printf("\nSELECT aster.protect(");
    print_literal(arguments->table);
    if (arguments->expression != NULL) {
        printf(", expression => ");
        print_literal(arguments->expression);
    } else if (arguments->row_column != NULL) {
        printf(", expression => quote_literal(");
        print_literal(arguments->resource);
        printf(") || ' || ' || quote_ident(");
        print_literal(arguments->row_column);
        printf(")");
    } else {
        printf(", ");
        print_literal(arguments->resource);
    }
    printf(");\n");
}

static int print(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    int code = check_arguments(cli, arguments, false);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    fputs(aster_postgres_schema(), stdout);
    if (arguments->table != NULL) {
        print_protection(arguments);
    }
    return ASTER_EXIT_OK;
}

/* A problem as PostgreSQL tells it, in one line. */
static aster_status fault(PGconn *conn, const PGresult *result, struct aster_error *error)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    message = message != NULL ? message : PQerrorMessage(conn);
    aster_status status = state != NULL && strcmp(state, "LF102") == 0    ? ASTER_ERR_VERSION
                          : PQstatus(conn) == CONNECTION_BAD              ? ASTER_ERR_UNREACHABLE
                          : state != NULL && strncmp(state, "53", 2) == 0 ? ASTER_ERR_IO
                                                                          : ASTER_ERR_INVALID;
    return aster_error_set(error, status, "%.*s%s%.200s", (int)strcspn(message, "\n"), message,
                           hint != NULL ? ": " : "", hint != NULL ? hint : "");
}

static void ignore_notice(void *user, const PGresult *notice)
{
    (void)user;
    (void)notice;
}

static aster_status connect(const char *store, PGconn **conn, struct aster_error *error)
{
    const char *const keys[] = {"fallback_application_name", "client_encoding", "connect_timeout", "dbname", NULL};
    const char *const values[] = {"aster schema", "UTF8", "10", store, NULL};
    *conn = PQconnectdbParams(keys, values, 1);
    if (*conn == NULL || PQstatus(*conn) != CONNECTION_OK) {
        const char *message = PQerrorMessage(*conn);
        return aster_error_set(error, ASTER_ERR_UNREACHABLE, "%.*s", (int)strcspn(message, "\n"), message);
    }
    PQsetNoticeReceiver(*conn, ignore_notice, NULL);
    return ASTER_OK;
}

static aster_status apply_schema(PGconn *conn, struct aster_error *error)
{
    PGresult *result = PQexec(conn, aster_postgres_schema());
    aster_status status = PQresultStatus(result) == PGRES_FATAL_ERROR ? fault(conn, result, error) : ASTER_OK;
    PQclear(result);
    return status;
}

static aster_status protect(PGconn *conn, const struct aster_schema_arguments *arguments, struct aster_error *error)
{
    const char *const values[] = {arguments->table, arguments->row_column != NULL ? NULL : arguments->resource,
                                  arguments->expression, arguments->row_column != NULL ? arguments->resource : NULL,
                                  arguments->row_column};
    PGresult *result =
        PQexecParams(conn,
                     "SELECT aster.protect($1::text::regclass, $2::text, coalesce($3::text, quote_literal($4::text) || "
                     "' || ' || quote_ident($5::text)))",
                     5, NULL, values, NULL, NULL, 0);
    aster_status status = PQresultStatus(result) == PGRES_TUPLES_OK ? ASTER_OK : fault(conn, result, error);
    PQclear(result);
    return status;
}

static void tell(json_t *findings, const PGresult *result, int row)
{
    const char *level = PQgetvalue(result, row, 0);
    const char *object = PQgetvalue(result, row, 1);
    const char *finding = PQgetvalue(result, row, 2);
    if (findings != NULL) {
        json_array_append_new(findings,
                              json_pack("{s:s, s:s, s:s}", "level", level, "object", object, "finding", finding));
        return;
    }
    char shown[ASTER_PRINTABLE_MAX];
    aster_printable(aster_text(object), shown);
    printf("%-5s %s: %s\n", level, shown, finding);
}

static int report(const struct aster_cli *cli, PGconn *conn, const char *table)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const char *const values[] = {table};
    PGresult *result = PQexecParams(conn, "SELECT level, object, finding FROM aster.verify($1::text::regclass)", 1,
                                    NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fault(conn, result, &error);
        PQclear(result);
        return aster_cli_fail(cli, &error);
    }
    json_t *findings = cli->json ? json_array() : NULL;
    bool intact = true;
    for (int row = 0; row < PQntuples(result); row++) {
        intact = intact && strcmp(PQgetvalue(result, row, 0), "FAIL") != 0;
        tell(findings, result, row);
    }
    PQclear(result);
    int code = intact ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
    if (cli->json) {
        char shown[512];
        aster_cli_postgres_show(cli->store, shown, sizeof shown);
        int failed = aster_json_print(
            json_pack("{s:s, s:b, s:o}", "store", shown, "intact", intact, "findings", findings), JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    return code;
}

static int visit(const struct aster_cli *cli, const struct aster_schema_arguments *arguments, bool changes)
{
    PGconn *conn = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = check_arguments(cli, arguments, true);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    aster_status status = connect(cli->store, &conn, &error);
    if (status == ASTER_OK && changes) {
        status = apply_schema(conn, &error);
    }
    if (status == ASTER_OK && changes && arguments->table != NULL) {
        status = protect(conn, arguments, &error);
    }
    code = status == ASTER_OK ? report(cli, conn, arguments->table) : aster_cli_fail(cli, &error);
    PQfinish(conn);
    return code;
}

static int apply(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    return visit(cli, arguments, true);
}

static int verify(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    return visit(cli, arguments, false);
}

const struct aster_schema_kind aster_schema_postgres = {"postgres", print, apply, verify};
