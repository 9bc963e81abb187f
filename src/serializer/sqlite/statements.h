/* The SQL of every prepared statement, of a store's connections. Parameters and columns are numbered as rows.c and
 * audit.c bind and read them. */
#ifndef SQLITE_STATEMENTS_H
#define SQLITE_STATEMENTS_H

#include "serializer/sqlite/connection.h"

enum aster_store_statement {
    ASTER_STATEMENT_ROW_LOAD = ASTER_STATEMENT_OWN,
    ASTER_STATEMENT_ROW_LIST,
    ASTER_STATEMENT_ROW_INSERT,
    ASTER_STATEMENT_ROW_UPDATE,
    ASTER_STATEMENT_ROW_ARM,
    ASTER_STATEMENT_ROW_DELETE,
    ASTER_STATEMENT_META_LOAD,
    ASTER_STATEMENT_META_STORE,
    ASTER_STATEMENT_AUDIT_INSERT,
    ASTER_STATEMENT_AUDIT_PRUNE,
    ASTER_STATEMENT_AUDIT_READ,
    ASTER_STATEMENT_COUNT
};

extern const char *const aster_store_statement_texts[ASTER_STATEMENT_COUNT];

#endif
