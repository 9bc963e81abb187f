/* The invoice store: the user's own tables in one SQLite file. `order_line` is what the invoice is made from; `invoice`
 * is what must be written by exactly one worker, and may be put under the guard of Aster's triggers. */
#ifndef DEMO_INVOICE_STORE_H
#define DEMO_INVOICE_STORE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "aster/status.h"
#include "cli/demo/invoice.h"

/* Open a connection of our own, apart from any serializer's. Close with sqlite3_close(). */
aster_status aster_demo_store_connect(const char *path, sqlite3 **db, struct aster_error *error);

/* Create both tables and the order; `triggers` (or NULL) is SQL to run after that. */
aster_status aster_demo_store_create(sqlite3 *db, const char *triggers, struct aster_error *error);

aster_status aster_demo_store_read_order(sqlite3 *db, struct demo_invoice *order, struct aster_error *error);

/* The customer changes the quantity of the first line: what was rendered before is out of date from now on. */
aster_status aster_demo_store_correct_order(sqlite3 *db, struct aster_error *error);

struct demo_publication {
    const char *published_by;
    int64_t epoch;
    int64_t total_cents;
    const unsigned char *pdf;
    size_t pdf_size;
};

/* Insert or replace the invoice, in the caller's transaction if there is one. ASTER_ERR_IO carries SQLite's message,
 * which names the reason when a trigger refused. */
aster_status aster_demo_store_publish(sqlite3 *db, const struct demo_publication *publication,
                                      struct aster_error *error);

struct demo_stored {
    bool found;
    char published_by[64];
    int64_t epoch;
    int64_t total_cents;
    unsigned char *pdf; /* owned */
    size_t pdf_size;
};

/* What the store holds now. Finish with aster_demo_stored_fini(). */
aster_status aster_demo_store_read(sqlite3 *db, struct demo_stored *stored, struct aster_error *error);
void aster_demo_stored_fini(struct demo_stored *stored);
bool aster_demo_stored_equal(const struct demo_stored *a, const struct demo_stored *b);

/* Begins with %PDF- and ends with %%EOF. */
bool aster_demo_stored_is_pdf(const struct demo_stored *stored);

/* Does no process hold the file's write lock at this moment? */
bool aster_demo_store_is_unlocked(sqlite3 *db);

#endif
