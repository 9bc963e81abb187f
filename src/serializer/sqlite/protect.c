#include "aster/sqlite.h"
#include "base/error.h"
#include "base/utf8.h"
#include "serializer/sqlite/guard.h"

static const char trigger_format[] = "DROP TRIGGER IF EXISTS \"aster_guard_%s_%w\";\n"
                                     "CREATE TRIGGER \"aster_guard_%s_%w\" BEFORE %s ON \"%w\"\n"
                                     "BEGIN\n"
                                     "%s%s"
                                     "END;\n";

/* RAISE makes SQLite keep a statement journal: a refused statement leaves nothing behind, not even its earlier rows. */
static const char check_format[] = "    SELECT CASE WHEN " ASTER_GUARD_FUNCTION "(%s, l.epoch, l.held, l.holder,\n"
                                   "                    (SELECT floor FROM aster_meta)) IS NOT 1\n"
                                   "                THEN RAISE(ABORT, 'aster: the guard refused this write') END\n"
                                   "    FROM (SELECT 1) LEFT JOIN aster_lease AS l ON l.resource = %s;\n";

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

/* One check in a trigger, as text for sqlite3_free(): of the one resource, or of that of the row called `row`. */
static char *check_text(const char *resource, const char *row, const char *row_column)
{
    char *expression = row_column == NULL ? sqlite3_mprintf("%Q", resource)
                                          : sqlite3_mprintf("%Q || %s.\"%w\"", resource, row, row_column);
    char *check = expression != NULL ? sqlite3_mprintf(check_format, expression, expression) : NULL;
    sqlite3_free(expression);
    return check;
}

static const struct guarded_event {
    const char *name;
    const char *keyword;
    bool has_old;
    bool has_new;
} guarded_events[] = {
    {"insert", "INSERT", false, true}, {"update", "UPDATE", true, true}, {"delete", "DELETE", true, false}};

/* A row that an update gives another name belongs to two resources: the writer needs the fence of both. */
static bool append_trigger(sqlite3_str *text, const struct guarded_event *event, const char *table,
                           const char *resource, const char *row_column)
{
    bool both = event->has_old && event->has_new && row_column != NULL;
    char *first = check_text(resource, event->has_old ? "OLD" : "NEW", row_column);
    char *second = both ? check_text(resource, "NEW", row_column) : sqlite3_mprintf("");
    bool made = first != NULL && second != NULL;
    if (made) {
        sqlite3_str_appendf(text, trigger_format, event->name, table, event->name, table, event->keyword, table, first,
                            second);
    }
    sqlite3_free(first);
    sqlite3_free(second);
    return made;
}

static aster_status check_column(const char *row_column, struct aster_error *error)
{
    struct aster_bytes name = aster_text(row_column);
    if (row_column == NULL || (name.size > 0 && aster_name_bytes_valid(name) == name.size)) {
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "the column's name is empty or not UTF-8 without control characters: name one column");
}

aster_status aster_sqlite_protect_sql(const char *table, struct aster_bytes resource, const char *row_column,
                                      char **sql, struct aster_error *error)
{
    aster_status status = check_table(table, error);
    if (status == ASTER_OK) {
        status = aster_resource_check(resource, error);
    }
    if (status == ASTER_OK) {
        status = check_column(row_column, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    char name[ASTER_RESOURCE_MAX + 1];
    memcpy(name, resource.data, resource.size);
    name[resource.size] = '\0';
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendall(text, "SAVEPOINT aster_protect;\n");
    bool complete = true;
    for (size_t i = 0; i < sizeof guarded_events / sizeof guarded_events[0]; i++) {
        complete = append_trigger(text, &guarded_events[i], table, name, row_column) && complete;
    }
    sqlite3_str_appendall(text, "RELEASE aster_protect;\n");
    complete = complete && sqlite3_str_errcode(text) == SQLITE_OK;
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
