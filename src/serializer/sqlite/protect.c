#include "aster/sqlite.h"
#include "base/error.h"
#include "base/utf8.h"
#include "serializer/sqlite/guard.h"

/* RAISE makes SQLite keep a statement journal: a refused statement leaves nothing behind, not even its earlier rows. */
static const char trigger_format[] = "DROP TRIGGER IF EXISTS \"aster_guard_%s_%w\";\n"
                                     "CREATE TRIGGER \"aster_guard_%s_%w\" BEFORE %s ON \"%w\"\n"
                                     "BEGIN\n"
                                     "    SELECT CASE WHEN " ASTER_GUARD_FUNCTION "(%Q, l.epoch, l.held, l.holder,\n"
                                     "                    (SELECT floor FROM aster_meta)) IS NOT 1\n"
                                     "                THEN RAISE(ABORT, 'aster: the guard refused this write') END\n"
                                     "    FROM (SELECT 1) LEFT JOIN aster_lease AS l ON l.resource = %Q;\n"
                                     "END;\n";

static aster_status check_table(const char *table, struct aster_error *error)
{
    struct aster_bytes name = aster_text(table);
    if (name.size == 0 || aster_name_bytes_valid(name) != name.size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the table's name is empty or not UTF-8 without control characters: name one table");
    }
    if (sqlite3_strnicmp(table, "aster_", 6) == 0 || sqlite3_strnicmp(table, "sqlite_", 7) == 0) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "table \"%s\" belongs to Aster or SQLite and cannot be protected: name a table of yours",
                               aster_printable(name, shown));
    }
    return ASTER_OK;
}

aster_status aster_sqlite_protect_sql(const char *table, struct aster_bytes resource, char **sql,
                                      struct aster_error *error)
{
    static const struct {
        const char *name;
        const char *event;
    } triggers[] = {{"insert", "INSERT"}, {"update", "UPDATE"}, {"delete", "DELETE"}};
    aster_status status = check_table(table, error);
    if (status == ASTER_OK) {
        status = aster_resource_check(resource, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    char name[ASTER_RESOURCE_MAX + 1];
    memcpy(name, resource.data, resource.size);
    name[resource.size] = '\0';
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, "SAVEPOINT aster_protect;\n");
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        sqlite3_str_appendf(text, trigger_format, triggers[i].name, table, triggers[i].name, table, triggers[i].event,
                            table, name, name);
    }
    sqlite3_str_appendall(text, "RELEASE aster_protect;\n");
    bool complete = sqlite3_str_errcode(text) == SQLITE_OK;
    char *made = sqlite3_str_finish(text);
    if (!complete || made == NULL) {
        sqlite3_free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the text of the triggers");
    }
    *sql = made;
    return ASTER_OK;
}

aster_status aster_sqlite_register(sqlite3 *db, struct aster_error *error)
{
    int code = aster_guard_install(db, NULL);
    if (code != SQLITE_OK) {
        return aster_error_set(error, code == SQLITE_NOMEM ? ASTER_ERR_NOMEM : ASTER_ERR_IO,
                               "cannot register the functions of the guard: %s", sqlite3_errstr(code));
    }
    return ASTER_OK;
}
