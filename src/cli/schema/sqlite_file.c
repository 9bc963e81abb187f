#include "cli/schema/sqlite_file.h"

#include <string.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "serializer/sqlite/guard.h"

#define BUSY_MS 5000

static aster_status fault(sqlite3 *db, struct aster_error *error)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        return aster_error_set(error, ASTER_ERR_BUSY, "another program is writing the file; try again");
    }
    return aster_error_set(error, ASTER_ERR_IO, "cannot use the file: %s", sqlite3_errmsg(db));
}

static aster_status open_file(const char *path, int flags, sqlite3 **db, struct aster_error *error)
{
    if (sqlite3_open_v2(path, db, flags, NULL) != SQLITE_OK) {
        aster_status status = fault(*db, error);
        sqlite3_close(*db);
        *db = NULL;
        return status;
    }
    sqlite3_busy_timeout(*db, BUSY_MS);
    return ASTER_OK;
}

static aster_status check_table_kind(sqlite3 *db, const char *table, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    char shown[ASTER_PRINTABLE_MAX];
    const char *wrong = "is not in the file: create the table first";
    if (sqlite3_prepare_v2(db,
                           "SELECT type = 'view', sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema "
                           "WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
                           -1, &statement, NULL) != SQLITE_OK) {
        return fault(db, error);
    }
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        wrong = sqlite3_column_int(statement, 0)   ? "is a view: protect the tables that it reads"
                : sqlite3_column_int(statement, 1) ? "is a virtual table, which cannot have triggers: protect another"
                                                   : NULL;
    }
    sqlite3_finalize(statement);
    return wrong == NULL
               ? ASTER_OK
               : aster_error_set(error, ASTER_ERR_INVALID, "%s %s", aster_printable(aster_text(table), shown), wrong);
}

/* SQLite renames a trigger's table, and not the trigger: the guards of a table that was renamed would be replaced, and
 * leave it without protection, when a new table takes the old name. */
static aster_status check_names_free(sqlite3 *db, const char *table, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = ASTER_OK;
    if (sqlite3_prepare_v2(db,
                           "SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name COLLATE NOCASE IN "
                           "('aster_guard_insert_' || ?1, 'aster_guard_update_' || ?1, 'aster_guard_delete_' || ?1) "
                           "AND tbl_name <> ?1 COLLATE NOCASE",
                           -1, &statement, NULL) != SQLITE_OK) {
        return fault(db, error);
    }
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        char shown[ASTER_PRINTABLE_MAX];
        char shown_other[ASTER_PRINTABLE_MAX];
        const char *other = (const char *)sqlite3_column_text(statement, 0);
        status = aster_error_set(
            error, ASTER_ERR_INVALID,
            "the guards of %s still carry the name of %s, which it had before: protect %s anew first",
            aster_printable(aster_text(other), shown_other), aster_printable(aster_text(table), shown), shown_other);
    }
    sqlite3_finalize(statement);
    return status;
}

static aster_status check_column(sqlite3 *db, const struct aster_schema_target *target, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (target->row_column == NULL) {
        return ASTER_OK;
    }
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2 COLLATE NOCASE", -1, &statement,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, target->table, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, target->row_column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    char shown[ASTER_PRINTABLE_MAX];
    char shown_table[ASTER_PRINTABLE_MAX];
    return found
               ? ASTER_OK
               : aster_error_set(error, ASTER_ERR_INVALID, "table %s has no column %s: name the column of --row-column",
                                 aster_printable(aster_text(target->table), shown_table),
                                 aster_printable(aster_text(target->row_column), shown));
}

static aster_status check_target(sqlite3 *db, const struct aster_schema_target *target, struct aster_error *error)
{
    aster_status status = check_table_kind(db, target->table, error);
    if (status == ASTER_OK) {
        status = check_names_free(db, target->table, error);
    }
    return status == ASTER_OK ? check_column(db, target, error) : status;
}

/* Also those that are named after an earlier name of the table. sqlite3_free() it; NULL when there is none. */
static char *drop_guards_text(sqlite3 *db, const char *table)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(db,
                           "SELECT group_concat('DROP TRIGGER \"' || replace(name, '\"', '\"\"') || '\";', ' ') FROM "
                           "sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND name LIKE "
                           "'aster\\_guard\\_%' ESCAPE '\\'",
                           -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
            text = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
        }
    }
    sqlite3_finalize(statement);
    return text;
}

static aster_status replace_guards(sqlite3 *db, const char *table, const char *sql, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return fault(db, error);
    }
    char *drop = drop_guards_text(db, table);
    if ((drop != NULL && sqlite3_exec(db, drop, NULL, NULL, NULL) != SQLITE_OK) ||
        sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = fault(db, error);
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_free(drop);
    return status;
}

aster_status aster_schema_file_apply(const char *path, const struct aster_schema_target *target, const char *sql,
                                     struct aster_error *error)
{
    sqlite3 *db = NULL;
    aster_status status = open_file(path, SQLITE_OPEN_READWRITE, &db, error);
    if (status == ASTER_OK) {
        status = check_target(db, target, error);
    }
    if (status == ASTER_OK) {
        status = replace_guards(db, target->table, sql, error);
    }
    sqlite3_close(db);
    return status;
}

/* The triggers as SQLite stores them: make them on a table of the same name elsewhere, and read them back. */
static aster_status make_expected(const struct aster_schema_target *target, sqlite3 **db, struct aster_error *error)
{
    char *triggers = NULL;
    aster_status status = open_file(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, db, error);
    if (status == ASTER_OK) {
        status =
            aster_sqlite_protect_sql(target->table, aster_text(target->resource), target->row_column, &triggers, error);
    }
    char *stand_in = sqlite3_mprintf("CREATE TABLE \"%w\"(x);", target->table);
    if (status == ASTER_OK && (sqlite3_exec(*db, aster_sqlite_schema(), NULL, NULL, NULL) != SQLITE_OK ||
                               sqlite3_exec(*db, stand_in, NULL, NULL, NULL) != SQLITE_OK ||
                               sqlite3_exec(*db, triggers, NULL, NULL, NULL) != SQLITE_OK)) {
        status = fault(*db, error);
    }
    sqlite3_free(stand_in);
    sqlite3_free(triggers);
    return status;
}

/* The guard's triggers of one table, all their text in one string; NULL when there is none. sqlite3_free() it. */
static char *trigger_text(sqlite3 *db, const char *table)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;
    if (sqlite3_prepare_v2(db,
                           "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema WHERE type = "
                           "'trigger' AND tbl_name = ?1 COLLATE NOCASE AND name LIKE 'aster\\_guard\\_%' ESCAPE '\\' "
                           "ORDER BY name)",
                           -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
            text = sqlite3_mprintf("%s", sqlite3_column_text(statement, 0));
        }
    }
    sqlite3_finalize(statement);
    return text;
}

/* Read a text quoted with `quote`, in which the quote itself stands twice; gives what follows it, or NULL. */
static const char *read_quoted(const char *at, char quote, char text[ASTER_RESOURCE_MAX + 1])
{
    size_t used = 0;
    if (*at++ != quote) {
        return NULL;
    }
    for (; *at != '\0'; at++) {
        if (at[0] == quote && at[1] != quote) {
            text[used] = '\0';
            return used > 0 ? at + 1 : NULL;
        }
        at += at[0] == quote;
        if (used == ASTER_RESOURCE_MAX) {
            return NULL;
        }
        text[used++] = *at;
    }
    return NULL;
}

/* What the first trigger asks for: 'NAME', or 'PREFIX' || OLD."COLUMN". False when it cannot be told. */
static bool read_target(const char *triggers, char resource[ASTER_RESOURCE_MAX + 1],
                        char column[ASTER_RESOURCE_MAX + 1], bool *has_column)
{
    static const char of_row[] = " || OLD.";
    const char *at = triggers != NULL ? strstr(triggers, ASTER_GUARD_FUNCTION "(") : NULL;
    if (at == NULL || (at = read_quoted(at + strlen(ASTER_GUARD_FUNCTION "("), '\'', resource)) == NULL) {
        return false;
    }
    *has_column = strncmp(at, of_row, strlen(of_row)) == 0;
    return !*has_column || read_quoted(at + strlen(of_row), '"', column) != NULL;
}

static void tell(struct aster_schema_report *report, const struct aster_schema_target *target, bool intact)
{
    char shown[ASTER_PRINTABLE_MAX];
    char shown_resource[ASTER_PRINTABLE_MAX];
    char shown_column[ASTER_PRINTABLE_MAX] = "";
    report->checked++;
    report->broken += !intact;
    if (report->json != NULL) {
        json_array_append_new(report->json,
                              json_pack("{s:s, s:s?, s:s?, s:b}", "table", target->table, "resource", target->resource,
                                        "row_column", target->row_column, "intact", intact));
        return;
    }
    aster_printable(aster_text(target->table), shown);
    aster_printable(aster_text(target->resource != NULL ? target->resource : "NAME"), shown_resource);
    bool by_row = target->row_column != NULL;
    aster_printable(aster_text(target->row_column), shown_column);
    if (intact) {
        printf("OK    table %s is protected by the fence of %s%s%s\n", shown, shown_resource,
               by_row ? " followed by the row's " : "", shown_column);
    } else {
        printf(
            "FAIL  table %s: a trigger is missing or was altered; `aster schema apply sqlite --protect %s --resource "
            "%s%s%s` puts them back\n",
            shown, shown, shown_resource, by_row ? " --row-column " : "", shown_column);
    }
}

static aster_status check_table(sqlite3 *db, const struct aster_schema_target *wanted,
                                struct aster_schema_report *report, struct aster_error *error)
{
    sqlite3 *other = NULL;
    char resource[ASTER_RESOURCE_MAX + 1];
    char column[ASTER_RESOURCE_MAX + 1];
    bool has_column = false;
    char *actual = trigger_text(db, wanted->table);
    struct aster_schema_target target = *wanted;
    if (target.resource == NULL && read_target(actual, resource, column, &has_column)) {
        target.resource = resource;
        target.row_column = has_column ? column : NULL;
    }
    aster_status status = ASTER_OK;
    bool intact = false;
    if (target.resource != NULL && aster_resource_check(aster_text(target.resource), NULL) == ASTER_OK) {
        status = make_expected(&target, &other, error);
        char *expected = status == ASTER_OK ? trigger_text(other, target.table) : NULL;
        intact = actual != NULL && expected != NULL && strcmp(actual, expected) == 0;
        sqlite3_free(expected);
        sqlite3_close(other);
    }
    if (status == ASTER_OK) {
        tell(report, &target, intact);
    }
    sqlite3_free(actual);
    return status;
}

aster_status aster_schema_file_verify(const char *path, const struct aster_schema_target *wanted,
                                      struct aster_schema_report *report, struct aster_error *error)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    aster_status status = open_file(path, SQLITE_OPEN_READWRITE, &db, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (wanted->table != NULL) {
        status = check_table(db, wanted, report, error);
    } else if (sqlite3_prepare_v2(db,
                                  "SELECT DISTINCT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE "
                                  "'aster\\_guard\\_%' ESCAPE '\\' ORDER BY 1",
                                  -1, &statement, NULL) != SQLITE_OK) {
        status = fault(db, error);
    } else {
        while (status == ASTER_OK && sqlite3_step(statement) == SQLITE_ROW) {
            const struct aster_schema_target found = {(const char *)sqlite3_column_text(statement, 0), NULL, NULL};
            status = check_table(db, &found, report, error);
        }
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return status;
}
