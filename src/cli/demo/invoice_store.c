#include "cli/demo/invoice_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BUSY_TIMEOUT_MS 3000

static const char *const tables =
    "CREATE TABLE order_line (position INTEGER PRIMARY KEY, text TEXT NOT NULL, quantity INTEGER NOT NULL,"
    " unit_cents INTEGER NOT NULL) STRICT;"
    "CREATE TABLE invoice (number TEXT PRIMARY KEY, published_by TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " total_cents INTEGER NOT NULL, pdf BLOB NOT NULL) STRICT;"
    "INSERT INTO order_line VALUES (1, 'Catalogue, 64 pages, offset print', 1200, 285),"
    " (2, 'Proof copies, digital', 25, 640), (3, 'Poster A1, coated 170 g', 80, 420),"
    " (4, 'Express delivery, pallet', 2, 8900);";

static aster_status sql_error(sqlite3 *db, struct aster_error *error, const char *what)
{
    return aster_error_set(error, ASTER_ERR_IO, "%s: %s", what, sqlite3_errmsg(db));
}

static aster_status run_sql(sqlite3 *db, const char *sql, const char *what, struct aster_error *error)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? ASTER_OK : sql_error(db, error, what);
}

aster_status aster_demo_store_connect(const char *path, sqlite3 **db, struct aster_error *error)
{
    sqlite3 *opened = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(path, &opened, flags, NULL) != SQLITE_OK) {
        aster_status status = sql_error(opened, error, "cannot open the invoice store");
        sqlite3_close(opened);
        return status;
    }
    sqlite3_busy_timeout(opened, BUSY_TIMEOUT_MS);
    *db = opened;
    return ASTER_OK;
}

aster_status aster_demo_store_create(sqlite3 *db, const char *triggers, struct aster_error *error)
{
    aster_status status = run_sql(db, "PRAGMA journal_mode = WAL", "cannot switch to WAL", error);
    if (status == ASTER_OK) {
        status = run_sql(db, tables, "cannot create the invoice tables", error);
    }
    if (status == ASTER_OK && triggers != NULL) {
        status = run_sql(db, triggers, "cannot create the guard's triggers", error);
    }
    return status;
}

aster_status aster_demo_store_read_order(sqlite3 *db, struct demo_invoice *order, struct aster_error *error)
{
    sqlite3_stmt *query = NULL;
    const char *sql = "SELECT text, quantity, unit_cents FROM order_line ORDER BY position";
    if (sqlite3_prepare_v2(db, sql, -1, &query, NULL) != SQLITE_OK) {
        return sql_error(db, error, "cannot read the order");
    }
    struct demo_invoice read = {0};
    int step;
    while ((step = sqlite3_step(query)) == SQLITE_ROW && read.line_count < DEMO_LINES_MAX) {
        struct demo_invoice_line *line = &read.lines[read.line_count++];
        snprintf(line->text, sizeof line->text, "%s", (const char *)sqlite3_column_text(query, 0));
        line->quantity = sqlite3_column_int64(query, 1);
        line->unit_cents = sqlite3_column_int64(query, 2);
    }
    aster_status status = step == SQLITE_DONE ? ASTER_OK : sql_error(db, error, "cannot read the order");
    sqlite3_finalize(query);
    if (status == ASTER_OK) {
        *order = read;
    }
    return status;
}

aster_status aster_demo_store_correct_order(sqlite3 *db, struct aster_error *error)
{
    return run_sql(db, "UPDATE order_line SET quantity = 800 WHERE position = 1", "cannot correct the order", error);
}

aster_status aster_demo_store_publish(sqlite3 *db, const struct demo_publication *publication,
                                      struct aster_error *error)
{
    sqlite3_stmt *write = NULL;
    const char *sql = "INSERT INTO invoice (number, published_by, epoch, total_cents, pdf)"
                      " VALUES ('" DEMO_INVOICE_NUMBER "', ?1, ?2, ?3, ?4) ON CONFLICT (number) DO UPDATE"
                      " SET published_by = ?1, epoch = ?2, total_cents = ?3, pdf = ?4";
    if (sqlite3_prepare_v2(db, sql, -1, &write, NULL) != SQLITE_OK) {
        return sql_error(db, error, "cannot publish");
    }
    sqlite3_bind_text(write, 1, publication->published_by, -1, SQLITE_STATIC);
    sqlite3_bind_int64(write, 2, publication->epoch);
    sqlite3_bind_int64(write, 3, publication->total_cents);
    sqlite3_bind_blob64(write, 4, publication->pdf, publication->pdf_size, SQLITE_STATIC);
    aster_status status = sqlite3_step(write) == SQLITE_DONE ? ASTER_OK : sql_error(db, error, "cannot publish");
    sqlite3_finalize(write);
    return status;
}

static aster_status copy_row(sqlite3_stmt *query, struct demo_stored *stored, struct aster_error *error)
{
    size_t size = (size_t)sqlite3_column_bytes(query, 3);
    unsigned char *pdf = malloc(size + 1);
    if (pdf == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a PDF of %zu bytes", size);
    }
    if (size > 0) {
        memcpy(pdf, sqlite3_column_blob(query, 3), size);
    }
    *stored = (struct demo_stored){.found = true,
                                   .epoch = sqlite3_column_int64(query, 1),
                                   .total_cents = sqlite3_column_int64(query, 2),
                                   .pdf = pdf,
                                   .pdf_size = size};
    snprintf(stored->published_by, sizeof stored->published_by, "%s", (const char *)sqlite3_column_text(query, 0));
    return ASTER_OK;
}

aster_status aster_demo_store_read(sqlite3 *db, struct demo_stored *stored, struct aster_error *error)
{
    sqlite3_stmt *query = NULL;
    const char *sql =
        "SELECT published_by, epoch, total_cents, pdf FROM invoice WHERE number = '" DEMO_INVOICE_NUMBER "'";
    if (sqlite3_prepare_v2(db, sql, -1, &query, NULL) != SQLITE_OK) {
        return sql_error(db, error, "cannot read the invoice");
    }
    aster_status status = ASTER_OK;
    int step = sqlite3_step(query);
    if (step == SQLITE_ROW) {
        status = copy_row(query, stored, error);
    } else if (step == SQLITE_DONE) {
        *stored = (struct demo_stored){0};
    } else {
        status = sql_error(db, error, "cannot read the invoice");
    }
    sqlite3_finalize(query);
    return status;
}

void aster_demo_stored_fini(struct demo_stored *stored)
{
    free(stored->pdf);
    *stored = (struct demo_stored){0};
}

bool aster_demo_stored_equal(const struct demo_stored *a, const struct demo_stored *b)
{
    return a->found && b->found && strcmp(a->published_by, b->published_by) == 0 && a->epoch == b->epoch &&
           a->total_cents == b->total_cents && a->pdf_size == b->pdf_size && memcmp(a->pdf, b->pdf, a->pdf_size) == 0;
}

bool aster_demo_stored_is_pdf(const struct demo_stored *stored)
{
    static const char head[] = "%PDF-";
    static const char tail[] = "%%EOF";
    size_t size = stored->pdf_size;
    if (size < sizeof head + sizeof tail || memcmp(stored->pdf, head, sizeof head - 1) != 0) {
        return false;
    }
    while (size > 0 && (stored->pdf[size - 1] == '\n' || stored->pdf[size - 1] == '\r')) {
        size--;
    }
    size_t length = sizeof tail - 1;
    return size >= length && memcmp(stored->pdf + size - length, tail, length) == 0;
}

bool aster_demo_store_is_unlocked(sqlite3 *db)
{
    sqlite3_busy_timeout(db, 0);
    bool unlocked = sqlite3_exec(db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
    return unlocked;
}
