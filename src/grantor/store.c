#include "grantor/store.h"

#include <string.h>

#include "aster/memory.h"
#include "aster/sqlite.h"
#include "base/error.h"

#define HISTORY_MAX 65536 /* the log follows the history: it must not be overtaken between two looks */

aster_status grantor_store_open(const char *store, aster_authorizer authorize, void *user,
                                struct aster_serializer **serializer, struct aster_error *error)
{
    if (strcmp(store, "mem:") == 0) {
        struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
        options.history_max = HISTORY_MAX;
        options.authorize = authorize;
        options.authorize_user = user;
        return aster_memory_open(&options, serializer, error);
    }
    if (strncmp(store, "sqlite:", 7) == 0) {
        struct aster_sqlite_options options = ASTER_SQLITE_OPTIONS_INIT;
        options.history_max = HISTORY_MAX;
        options.authorize = authorize;
        options.authorize_user = user;
        return aster_sqlite_open(store + 7, &options, serializer, error);
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "the store \"%.100s\" is unknown: write sqlite:PATH or mem:", store);
}
