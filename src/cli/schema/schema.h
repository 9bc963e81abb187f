/* What `aster schema` prints, applies and verifies: one kind of store or resource a file, in the table of cmd_schema.c.
 */
#ifndef CLI_SCHEMA_SCHEMA_H
#define CLI_SCHEMA_SCHEMA_H

#include "cli/command.h"

/* The command's options; NULL = not given. Each kind says which of them it takes. */
struct aster_schema_arguments {
    const char *table;
    const char *resource;
    const char *row_column;
    const char *expression;
    const char *to; /* where, for a kind that is no store */
};

struct aster_schema_kind {
    const char *name;
    int (*print)(const struct aster_cli *cli, const struct aster_schema_arguments *arguments);
    int (*apply)(const struct aster_cli *cli, const struct aster_schema_arguments *arguments);
    int (*verify)(const struct aster_cli *cli, const struct aster_schema_arguments *arguments);
};

extern const struct aster_schema_kind aster_schema_sqlite, aster_schema_postgres, aster_schema_redis;

#endif
