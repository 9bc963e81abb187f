#include "cli/schema_file.h"

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

aster_status aster_schema_file_apply(const char *path, const char *sql, struct aster_error *error)
{
    sqlite3 *db = NULL;
    aster_status status = open_file(path, SQLITE_OPEN_READWRITE, &db, error);
    if (status == ASTER_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        status = fault(db, error);
    }
    sqlite3_close(db);
    return status;
}

/* The triggers as SQLite stores them: make them on a table of the same name elsewhere, and read them back. */
static aster_status make_expected(const char *table, const char *resource, sqlite3 **db, struct aster_error *error)
{
    char *triggers = NULL;
    aster_status status = open_file(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, db, error);
    if (status == ASTER_OK) {
        status = aster_sqlite_protect_sql(table, aster_text(resource), &triggers, error);
    }
    char *stand_in = sqlite3_mprintf("CREATE TABLE \"%w\"(x);", table);
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

/* The resource that a trigger names: the quoted text after the guard's function. False when there is none. */
static bool resource_of(const char *triggers, char resource[ASTER_RESOURCE_MAX + 1])
{
    const char *at = triggers != NULL ? strstr(triggers, ASTER_GUARD_FUNCTION "('") : NULL;
    size_t used = 0;
    if (at == NULL) {
        return false;
    }
    for (at += strlen(ASTER_GUARD_FUNCTION "('"); *at != '\0'; at++) {
        if (at[0] == '\'' && at[1] != '\'') {
            resource[used] = '\0';
            return used > 0;
        }
        at += at[0] == '\'';
        if (used == ASTER_RESOURCE_MAX) {
            return false;
        }
        resource[used++] = *at;
    }
    return false;
}

static void tell(struct aster_schema_report *report, const char *table, const char *resource, bool intact)
{
    char shown[ASTER_PRINTABLE_MAX];
    char shown_resource[ASTER_PRINTABLE_MAX];
    report->checked++;
    report->broken += !intact;
    if (report->json != NULL) {
        json_array_append_new(report->json,
                              json_pack("{s:s, s:s?, s:b}", "table", table, "resource", resource, "intact", intact));
        return;
    }
    aster_printable(aster_text(table), shown);
    aster_printable(aster_text(resource != NULL ? resource : "NAME"), shown_resource);
    if (intact) {
        printf("OK    table %s is protected by the fence of %s\n", shown, shown_resource);
    } else {
        printf(
            "FAIL  table %s: a trigger is missing or was altered; `aster schema apply sqlite --protect %s --resource "
            "%s` puts them back\n",
            shown, shown, shown_resource);
    }
}

static aster_status check_table(sqlite3 *db, const char *table, const char *wanted, struct aster_schema_report *report,
                                struct aster_error *error)
{
    sqlite3 *other = NULL;
    char found[ASTER_RESOURCE_MAX + 1];
    char *actual = trigger_text(db, table);
    const char *resource = wanted != NULL ? wanted : resource_of(actual, found) ? found : NULL;
    aster_status status = ASTER_OK;
    bool intact = false;
    if (resource != NULL && aster_resource_check(aster_text(resource), NULL) == ASTER_OK) {
        status = make_expected(table, resource, &other, error);
        char *expected = status == ASTER_OK ? trigger_text(other, table) : NULL;
        intact = actual != NULL && expected != NULL && strcmp(actual, expected) == 0;
        sqlite3_free(expected);
        sqlite3_close(other);
    }
    if (status == ASTER_OK) {
        tell(report, table, resource, intact);
    }
    sqlite3_free(actual);
    return status;
}

aster_status aster_schema_file_verify(const char *path, const char *table, const char *resource,
                                      struct aster_schema_report *report, struct aster_error *error)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    aster_status status = open_file(path, SQLITE_OPEN_READWRITE, &db, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (table != NULL) {
        status = check_table(db, table, resource, report, error);
    } else if (sqlite3_prepare_v2(db,
                                  "SELECT DISTINCT tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE "
                                  "'aster\\_guard\\_%' ESCAPE '\\' ORDER BY 1",
                                  -1, &statement, NULL) != SQLITE_OK) {
        status = fault(db, error);
    } else {
        while (status == ASTER_OK && sqlite3_step(statement) == SQLITE_ROW) {
            status = check_table(db, (const char *)sqlite3_column_text(statement, 0), NULL, report, error);
        }
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return status;
}
