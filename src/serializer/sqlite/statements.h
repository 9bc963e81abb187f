/* The SQL of every prepared statement, by enum aster_statement. Parameters and columns are numbered as rows.c and
 * audit.c bind and read them. */
#ifndef SQLITE_STATEMENTS_H
#define SQLITE_STATEMENTS_H

#include "serializer/sqlite/connection.h"

extern const char *const aster_statement_texts[ASTER_STATEMENT_COUNT];

#endif
