#include "document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "CREATE TABLE IF NOT EXISTS document (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB,"
                             " resource TEXT NOT NULL, epoch INTEGER NOT NULL, holder TEXT NOT NULL)";

sqlite3 *document_open(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_busy_timeout(db, 5000) != SQLITE_OK ||
        sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "http_service: cannot open %s: %s\n", path, sqlite3_errmsg(db));
        sqlite3_close(db);
        return NULL;
    }
    return db;
}

static struct aster_bytes column(sqlite3_stmt *statement, int index)
{
    return (struct aster_bytes){sqlite3_column_blob(statement, index), (size_t)sqlite3_column_bytes(statement, index)};
}

static void bind(sqlite3_stmt *statement, int index, struct aster_bytes bytes)
{
    sqlite3_bind_text64(statement, index, bytes.size > 0 ? bytes.data : "", bytes.size, SQLITE_STATIC, SQLITE_UTF8);
}

/* The heart of it: the fence of the last write decides. */
static aster_status judge(sqlite3 *db, const struct aster_fence *fence, struct aster_bytes writer,
                          struct aster_verdict *verdict)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, "SELECT resource, epoch, holder FROM document", -1, &statement, NULL) != SQLITE_OK) {
        return ASTER_ERR_IO;
    }
    struct aster_fence last = {{NULL, 0}, 0, {NULL, 0}};
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        last = (struct aster_fence){column(statement, 0), sqlite3_column_int64(statement, 1), column(statement, 2)};
    }
    *verdict = aster_fence_follow(&last, fence, writer);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? ASTER_OK : ASTER_ERR_IO;
}

static aster_status store(sqlite3 *db, const struct aster_fence *fence, struct aster_bytes body)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO document VALUES (1, ?1, ?2, ?3, ?4)", -1, &statement, NULL) !=
        SQLITE_OK) {
        return ASTER_ERR_IO;
    }
    sqlite3_bind_blob64(statement, 1, body.size > 0 ? body.data : "", body.size, SQLITE_STATIC);
    bind(statement, 2, fence->resource);
    sqlite3_bind_int64(statement, 3, fence->epoch);
    bind(statement, 4, fence->holder);
    int code = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? ASTER_OK : ASTER_ERR_IO;
}

aster_status document_write(sqlite3 *db, const struct aster_fence *fence, struct aster_bytes writer,
                            struct aster_bytes body, struct aster_verdict *verdict)
{
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        return ASTER_ERR_IO;
    }
    aster_status status = judge(db, fence, writer, verdict);
    if (status == ASTER_OK && verdict->reason == ASTER_REASON_NONE) {
        status = store(db, fence, body);
    }
    if (status == ASTER_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK) {
        return ASTER_OK;
    }
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return ASTER_ERR_IO;
}

char *document_read(sqlite3 *db, size_t *size)
{
    sqlite3_stmt *statement;
    char *copy = NULL;
    if (sqlite3_prepare_v2(db, "SELECT body FROM document", -1, &statement, NULL) != SQLITE_OK) {
        return NULL;
    }
    if (sqlite3_step(statement) == SQLITE_ROW) {
        struct aster_bytes body = column(statement, 0);
        copy = malloc(body.size + 1);
        if (copy != NULL) {
            memcpy(copy, body.size > 0 ? body.data : "", body.size);
            *size = body.size;
        }
    }
    sqlite3_finalize(statement);
    return copy;
}
