/* As much of a database as the shop needs: the same SQL, with parameters $1, $2, ..., on SQLite and on PostgreSQL. */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>

#include "aster/serializer.h"

struct db;

/* A parameter: text, or bytes when `size` is not 0. */
struct db_value {
    const void *data;
    size_t size;
};

static inline struct db_value db_text(const char *text)
{
    return (struct db_value){text, 0};
}

/* A row's columns as text; false stops. */
typedef bool (*db_row)(const char *const *columns, void *user);

struct db_ops {
    const char *scheme;       /* how its addresses begin */
    const char *blob_type;    /* a column of bytes */
    const char *counter_type; /* a primary key that counts by itself */
    struct db *(*open)(const char *url);
    /* The transaction that the serializer of the same database hands to a fenced write. */
    struct db *(*within)(void *tx);
    void (*close)(struct db *db);
    bool (*each)(struct db *db, const char *sql, int count, const struct db_value *values, db_row row, void *user);
    /* Let only the fence of "invoice/ORDER" write the rows of `invoice` with that order. */
    bool (*protect)(struct db *db);
    aster_status (*serializer)(const char *url, struct aster_serializer **serializer, struct aster_error *error);
};

struct db {
    const struct db_ops *ops;
};

/* NULL after saying why on stderr. */
struct db *db_open(const char *url);
void db_close(struct db *db);
const struct db_ops *db_ops_for(const char *url);

/* Run one statement; false after saying why on stderr. */
bool db_run(struct db *db, const char *sql, int count, const struct db_value *values);
bool db_each(struct db *db, const char *sql, int count, const struct db_value *values, db_row row, void *user);
/* The first column of the first row as a number; -1 when there is none. */
long long db_number(struct db *db, const char *sql, int count, const struct db_value *values);

extern const struct db_ops db_sqlite, db_postgres;

#endif
