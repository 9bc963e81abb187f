#include "db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aster/sqlite.h"

#define COLUMNS_MAX 8
#define BUSY_MS 10000

struct sqlite_db {
    struct db db;
    sqlite3 *handle;
    bool borrowed; /* the serializer's, inside a fenced write */
};

static struct db *wrap(sqlite3 *handle, bool borrowed)
{
    struct sqlite_db *made = calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (struct sqlite_db){{&db_sqlite}, handle, borrowed};
    }
    return made != NULL ? &made->db : NULL;
}

static struct db *open_file(const char *url)
{
    sqlite3 *handle = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (sqlite3_open(url + strlen(db_sqlite.scheme), &handle) != SQLITE_OK ||
        sqlite3_busy_timeout(handle, BUSY_MS) != SQLITE_OK || aster_sqlite_register(handle, &error) != ASTER_OK) {
        fprintf(stderr, "shop: cannot open %s: %s\n", url, sqlite3_errmsg(handle));
        sqlite3_close(handle);
        return NULL;
    }
    return wrap(handle, false);
}

static struct db *within(void *tx)
{
    return wrap(tx, true);
}

static void close_db(struct db *db)
{
    struct sqlite_db *mine = (struct sqlite_db *)db;
    if (!mine->borrowed) {
        sqlite3_close(mine->handle);
    }
    free(mine);
}

static void bind(sqlite3_stmt *statement, int count, const struct db_value *values)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "$%d", i + 1);
        int index = sqlite3_bind_parameter_index(statement, name);
        if (values[i].size > 0) {
            sqlite3_bind_blob64(statement, index, values[i].data, values[i].size, SQLITE_STATIC);
        } else {
            sqlite3_bind_text(statement, index, values[i].data, -1, SQLITE_STATIC);
        }
    }
}

static bool visit(sqlite3_stmt *statement, db_row row, void *user)
{
    const char *columns[COLUMNS_MAX] = {NULL};
    for (int i = 0; i < sqlite3_column_count(statement) && i < COLUMNS_MAX; i++) {
        columns[i] = (const char *)sqlite3_column_text(statement, i);
    }
    return row == NULL || row(columns, user);
}

static bool each(struct db *db, const char *sql, int count, const struct db_value *values, db_row row, void *user)
{
    sqlite3 *handle = ((struct sqlite_db *)db)->handle;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) != SQLITE_OK) {
        fprintf(stderr, "shop: %s\n", sqlite3_errmsg(handle));
        return false;
    }
    bind(statement, count, values);
    int code = sqlite3_step(statement);
    while (code == SQLITE_ROW && visit(statement, row, user)) {
        code = sqlite3_step(statement);
    }
    bool worked = code == SQLITE_ROW || code == SQLITE_DONE;
    if (!worked) {
        fprintf(stderr, "shop: %s\n", sqlite3_errmsg(handle));
    }
    sqlite3_finalize(statement);
    return worked;
}

static bool protect(struct db *db)
{
    char *sql = NULL;
    char *message = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_sqlite_protect_sql("invoice", aster_text("invoice/"), "order_id", &sql, &error) != ASTER_OK) {
        fprintf(stderr, "shop: %s\n", error.message);
        return false;
    }
    bool worked = sqlite3_exec(((struct sqlite_db *)db)->handle, sql, NULL, NULL, &message) == SQLITE_OK;
    if (!worked) {
        fprintf(stderr, "shop: %s\n", message);
    }
    sqlite3_free(message);
    sqlite3_free(sql);
    return worked;
}

static aster_status serializer(const char *url, struct aster_serializer **made, struct aster_error *error)
{
    return aster_sqlite_open(url + strlen(db_sqlite.scheme), NULL, made, error);
}

const struct db_ops db_sqlite = {
    "sqlite:", "BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT", open_file, within, close_db, each, protect, serializer,
};
