#include <string.h>

#include "cli/postgres/postgres.h"

bool aster_store_is_postgres(const char *store)
{
    return store != NULL && (strncmp(store, "postgresql://", 13) == 0 || strncmp(store, "postgres://", 11) == 0);
}
