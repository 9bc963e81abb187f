/* What the command line has to do with PostgreSQL. Without libpq in the build, absent.c stands in for it and refuses.
 */
#ifndef CLI_POSTGRES_POSTGRES_H
#define CLI_POSTGRES_POSTGRES_H

#include <stdbool.h>

#include "aster/serializer.h"

/* Does --store or ASTER_STORE name a PostgreSQL? NULL is legal. */
bool aster_store_is_postgres(const char *store);

/* Errors: as aster_postgres_open(); ASTER_ERR_UNSUPPORTED without PostgreSQL in this build. */
aster_status aster_cli_postgres_open(const char *store, struct aster_serializer **serializer,
                                     struct aster_error *error);

/* `store` for people: without the password that may be in it. */
void aster_cli_postgres_show(const char *store, char *shown, size_t size);

#endif
