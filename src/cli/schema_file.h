/* The triggers of protected tables in a database file. */
#ifndef CLI_SCHEMA_FILE_H
#define CLI_SCHEMA_FILE_H

#include "cli/output.h"

/* Run the SQL in the file. Errors: ASTER_ERR_IO, ASTER_ERR_BUSY. */
aster_status aster_schema_file_apply(const char *path, const char *sql, struct aster_error *error);

struct aster_schema_report {
    json_t *json; /* array to fill; NULL = print lines */
    int checked;  /* tables */
    int broken;
};

/* Compare the guard's triggers of every protected table with what they should be. With `table` and `resource`, also
 * insist that this table is protected by this resource. Errors: ASTER_ERR_IO, ASTER_ERR_BUSY, ASTER_ERR_NOMEM. */
aster_status aster_schema_file_verify(const char *path, const char *table, const char *resource,
                                      struct aster_schema_report *report, struct aster_error *error);

#endif
