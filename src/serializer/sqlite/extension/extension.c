#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include "serializer/sqlite/guard.h"

int sqlite3_aster_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

__attribute__((visibility("default"))) int sqlite3_aster_init(sqlite3 *db, char **message,
                                                              const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api)
    int code = aster_guard_install(db, NULL);
    if (code != SQLITE_OK) {
        *message = sqlite3_mprintf("aster: cannot register the functions of the guard: %s", sqlite3_errmsg(db));
    }
    return code;
}
