#include "serializer/sqlite/audit.h"

#include "serializer/sqlite/statements.h"

/* Deleting one page of old events at a time costs less than one event at a time. */
#define PRUNE_EVERY 256

static void bind_name(sqlite3_stmt *statement, int index, struct aster_bytes name)
{
    sqlite3_bind_text(statement, index, name.size > 0 ? name.data : "", (int)name.size, SQLITE_STATIC);
}

static aster_status prune(struct aster_connection *connection, int64_t newest, int64_t history_max,
                          struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_AUDIT_PRUNE, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_int64(statement, 1, newest - history_max);
    return aster_connection_run(connection, ASTER_STATEMENT_AUDIT_PRUNE, error);
}

aster_status aster_audit_append(struct aster_connection *connection, const struct aster_event *event,
                                int64_t history_max, struct aster_error *error)
{
    if (history_max == 0) {
        return ASTER_OK;
    }
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_AUDIT_INSERT, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_int64(statement, 1, event->unix_ms);
    sqlite3_bind_int(statement, 2, (int)event->kind);
    sqlite3_bind_int(statement, 3, (int)event->reason);
    bind_name(statement, 4, event->resource);
    bind_name(statement, 5, event->actor);
    bind_name(statement, 6, event->previous);
    sqlite3_bind_int64(statement, 7, event->epoch);
    sqlite3_bind_int64(statement, 8, event->carried_epoch);
    status = aster_connection_run(connection, ASTER_STATEMENT_AUDIT_INSERT, error);
    sqlite3_clear_bindings(statement);
    int64_t newest = sqlite3_last_insert_rowid(connection->db);
    int64_t every = history_max < PRUNE_EVERY ? history_max : PRUNE_EVERY;
    if (status == ASTER_OK && newest % every == 0) {
        status = prune(connection, newest, history_max, error);
    }
    return status;
}

static struct aster_bytes name_column(sqlite3_stmt *statement, int index)
{
    const void *data = sqlite3_column_text(statement, index);
    return (struct aster_bytes){data, (size_t)sqlite3_column_bytes(statement, index)};
}

aster_status aster_audit_read(struct aster_connection *connection, const struct aster_history_query *query,
                              int64_t history_max, aster_visit_event visit, void *user, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_AUDIT_READ, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_int64(statement, 1, query->after_revision);
    sqlite3_bind_int64(statement, 2, history_max);
    bind_name(statement, 3, query->resource);
    sqlite3_bind_int64(statement, 4, query->limit == 0 || query->limit > INT64_MAX ? -1 : (int64_t)query->limit);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const struct aster_event event = {
            .revision = sqlite3_column_int64(statement, 0),
            .unix_ms = sqlite3_column_int64(statement, 1),
            .kind = (enum aster_event_kind)sqlite3_column_int(statement, 2),
            .reason = (enum aster_reason)sqlite3_column_int(statement, 3),
            .resource = name_column(statement, 4),
            .actor = name_column(statement, 5),
            .previous = name_column(statement, 6),
            .epoch = sqlite3_column_int64(statement, 7),
            .carried_epoch = sqlite3_column_int64(statement, 8),
        };
        if (!visit(&event, user)) {
            break;
        }
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        status = aster_connection_fault(connection, code, error);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}
