/* The triggers of protected tables in a database file. */
#ifndef CLI_SCHEMA_SQLITE_FILE_H
#define CLI_SCHEMA_SQLITE_FILE_H

#include "cli/output.h"

/* A table and whose fence it asks for; see aster_sqlite_protect_sql(). NULL = not given. */
struct aster_schema_target {
    const char *table;
    const char *resource;
    const char *row_column;
};

/* Put the triggers' SQL in the place of all guards of the table, in one transaction. The file must have the target's
 * table and column: SQLite would only miss the column at the first write. Errors: ASTER_ERR_INVALID, ASTER_ERR_IO,
 * ASTER_ERR_BUSY. */
aster_status aster_schema_file_apply(const char *path, const struct aster_schema_target *target, const char *sql,
                                     struct aster_error *error);

struct aster_schema_report {
    json_t *json; /* array to fill; NULL = print lines */
    int checked;  /* tables */
    int broken;
};

/* Compare the guard's triggers of every protected table with what they should be. With wanted->table, also insist that
 * this table is protected in this way. Errors: ASTER_ERR_IO, ASTER_ERR_BUSY, ASTER_ERR_NOMEM. */
aster_status aster_schema_file_verify(const char *path, const struct aster_schema_target *wanted,
                                      struct aster_schema_report *report, struct aster_error *error);

#endif
