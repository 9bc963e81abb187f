#include "serializer/sqlite/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "engine/codec.h"
#include "serializer/sqlite/statements.h"

/* Columns of ROW_COLUMNS in statements.c; parameters are one higher. */
enum column {
    COLUMN_RESOURCE,
    COLUMN_EPOCH,
    COLUMN_HELD,
    COLUMN_HOLDER,
    COLUMN_TTL,
    COLUMN_LEASE_REVISION,
    COLUMN_VALUE,
    COLUMN_VALUE_REVISION,
    COLUMN_LAST_HOLDER,
    COLUMN_LAST_EPOCH_HELD,
    COLUMN_REQUEST_ID,
    COLUMN_REQUEST_CALLER,
    COLUMN_REQUEST_KIND,
    COLUMN_REQUEST_TAKEOVER,
    COLUMN_REQUEST_EPOCH,
    COLUMN_CHECKSUM,
    COLUMN_GRANTED_AT,
    COLUMN_BOOT_ID,
    COLUMN_SINCE
};

aster_status aster_meta_load(struct aster_connection *connection, struct aster_meta *meta, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_META_LOAD, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        meta->schema_version = sqlite3_column_int64(statement, 0);
        meta->floor = sqlite3_column_int64(statement, 1);
        meta->resources = sqlite3_column_int64(statement, 2);
        const char *boot_id = (const char *)sqlite3_column_text(statement, 3);
        snprintf(meta->boot_id, sizeof meta->boot_id, "%s", boot_id != NULL ? boot_id : "");
    } else if (code == SQLITE_DONE) {
        status = aster_error_set(error, ASTER_ERR_CORRUPT,
                                 "table aster_meta has lost its row: restore the file from a copy");
    } else {
        status = aster_connection_fault(connection, code, error);
    }
    sqlite3_reset(statement);
    if (status == ASTER_OK && meta->floor < 0) {
        status = aster_error_set(error, ASTER_ERR_CORRUPT, "the floor in aster_meta is negative: restore the file");
    }
    return status;
}

aster_status aster_meta_store(struct aster_connection *connection, const struct aster_meta *meta,
                              struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_META_STORE, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_int64(statement, 1, meta->floor);
    sqlite3_bind_int64(statement, 2, meta->resources);
    sqlite3_bind_text(statement, 3, meta->boot_id, -1, SQLITE_TRANSIENT);
    return aster_connection_run(connection, ASTER_STATEMENT_META_STORE, error);
}

static struct aster_bytes column(sqlite3_stmt *statement, enum column index)
{
    const void *data = sqlite3_column_blob(statement, (int)index); /* before the length: it may convert */
    return (struct aster_bytes){data, (size_t)sqlite3_column_bytes(statement, (int)index)};
}

static aster_status corrupt(struct aster_bytes resource, const char *what, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_CORRUPT,
                           "the row of \"%s\" was changed by something else than Aster, or is damaged (%s): it is not "
                           "served; restore the file from a copy",
                           aster_printable(resource, shown), what);
}

/* The row as it stands in the statement; views borrow from it. */
static aster_status read_row(sqlite3_stmt *statement, struct aster_bytes resource, struct aster_row *row,
                             struct aster_error *error)
{
    row->epoch = sqlite3_column_int64(statement, COLUMN_EPOCH);
    row->held = sqlite3_column_int64(statement, COLUMN_HELD) != 0;
    row->holder = column(statement, COLUMN_HOLDER);
    row->ttl_ms = sqlite3_column_int64(statement, COLUMN_TTL);
    row->lease_revision = sqlite3_column_int64(statement, COLUMN_LEASE_REVISION);
    row->value = column(statement, COLUMN_VALUE);
    row->value_revision = sqlite3_column_int64(statement, COLUMN_VALUE_REVISION);
    row->last_holder = column(statement, COLUMN_LAST_HOLDER);
    row->last_epoch_held = sqlite3_column_int64(statement, COLUMN_LAST_EPOCH_HELD);
    struct aster_bytes id = column(statement, COLUMN_REQUEST_ID);
    if (id.size != sizeof row->applied.request_id) {
        return corrupt(resource, "request_id has another size than 16 bytes", error);
    }
    memcpy(row->applied.request_id, id.data, id.size);
    row->applied.caller = column(statement, COLUMN_REQUEST_CALLER);
    row->applied.kind = (enum aster_operation_kind)sqlite3_column_int(statement, COLUMN_REQUEST_KIND);
    row->applied.takeover = sqlite3_column_int64(statement, COLUMN_REQUEST_TAKEOVER) != 0;
    row->applied.epoch = sqlite3_column_int64(statement, COLUMN_REQUEST_EPOCH);
    if (aster_row_checksum(resource, row) != (uint64_t)sqlite3_column_int64(statement, COLUMN_CHECKSUM)) {
        return corrupt(resource, "its checksum does not match", error);
    }
    const char *broken = aster_row_check(resource, row);
    return broken == NULL ? ASTER_OK : corrupt(resource, broken, error);
}

static aster_status keep(struct aster_arena *arena, struct aster_row *row, struct aster_error *error)
{
    if (!aster_arena_copy(arena, row->holder, &row->holder) || !aster_arena_copy(arena, row->value, &row->value) ||
        !aster_arena_copy(arena, row->last_holder, &row->last_holder) ||
        !aster_arena_copy(arena, row->applied.caller, &row->applied.caller)) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a row: nothing was applied");
    }
    return ASTER_OK;
}

static aster_status read_stored(const struct aster_row_reader *reader, sqlite3_stmt *statement,
                                struct aster_bytes resource, struct aster_stored_row *stored, struct aster_error *error)
{
    struct aster_stored_row read = {.exists = true};
    aster_status status = read_row(statement, resource, &read.row, error);
    if (status == ASTER_OK) {
        status = keep(reader->arena, &read.row, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    read.granted_at_ns = aster_boot_from_stored(reader->boot, sqlite3_column_int64(statement, COLUMN_GRANTED_AT));
    read.since_unix_ms = sqlite3_column_int64(statement, COLUMN_SINCE);
    const char *boot_id = (const char *)sqlite3_column_text(statement, COLUMN_BOOT_ID);
    int64_t now_ns = aster_clock_now_ns(reader->clock); /* after the snapshot was taken: no grant in it is later */
    if (read.row.held && (boot_id == NULL || strcmp(boot_id, reader->boot->id) != 0 || read.granted_at_ns > now_ns)) {
        read.rearmed = true;
        read.granted_at_ns = now_ns;
    }
    *stored = read;
    return ASTER_OK;
}

static aster_status absent(struct aster_connection *connection, struct aster_stored_row *stored,
                           struct aster_error *error)
{
    struct aster_meta meta;
    aster_status status = aster_meta_load(connection, &meta, error);
    if (status == ASTER_OK) {
        *stored = (struct aster_stored_row){.row = aster_row_absent(meta.floor)};
    }
    return status;
}

aster_status aster_row_load(const struct aster_row_reader *reader, struct aster_bytes resource,
                            struct aster_stored_row *stored, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(reader->connection, ASTER_STATEMENT_ROW_LOAD, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_text(statement, 1, resource.data, (int)resource.size, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        status = read_stored(reader, statement, resource, stored, error);
    } else if (code != SQLITE_DONE) {
        status = aster_connection_fault(reader->connection, code, error);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_DONE ? absent(reader->connection, stored, error) : status;
}

static bool starts_with(struct aster_bytes name, struct aster_bytes prefix)
{
    return name.size >= prefix.size && (prefix.size == 0 || memcmp(name.data, prefix.data, prefix.size) == 0);
}

aster_status aster_row_list(const struct aster_row_reader *reader, const struct aster_list_query *query,
                            aster_stored_row_visit visit, void *user, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(reader->connection, ASTER_STATEMENT_ROW_LIST, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    /* Names that share a prefix stand together and none of them is smaller than it: the first that does not have it
     * ends the range, so no upper bound has to be made up. */
    struct aster_bytes first = aster_bytes_compare(query->after, query->prefix) > 0 ? query->after : query->prefix;
    sqlite3_bind_text(statement, 1, first.size > 0 ? first.data : "", (int)first.size, SQLITE_STATIC);
    size_t count = 0;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct aster_bytes resource = column(statement, COLUMN_RESOURCE);
        if (!starts_with(resource, query->prefix)) {
            break;
        }
        if (aster_bytes_compare(resource, query->after) <= 0) {
            continue;
        }
        aster_arena_reset(reader->arena);
        struct aster_stored_row stored;
        status = read_stored(reader, statement, resource, &stored, error);
        if (status != ASTER_OK || !visit(resource, &stored, user) || ++count == query->limit) {
            break;
        }
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        status = aster_connection_fault(reader->connection, code, error);
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static void bind_name(sqlite3_stmt *statement, enum column index, struct aster_bytes name)
{
    sqlite3_bind_text(statement, (int)index + 1, name.size > 0 ? name.data : "", (int)name.size, SQLITE_STATIC);
}

static void bind_integer(sqlite3_stmt *statement, enum column index, int64_t value)
{
    sqlite3_bind_int64(statement, (int)index + 1, value);
}

static void bind_row(sqlite3_stmt *statement, struct aster_bytes resource, const struct aster_row *row)
{
    bind_name(statement, COLUMN_RESOURCE, resource);
    bind_integer(statement, COLUMN_EPOCH, row->epoch);
    bind_integer(statement, COLUMN_HELD, row->held);
    bind_name(statement, COLUMN_HOLDER, row->holder);
    bind_integer(statement, COLUMN_TTL, row->ttl_ms);
    bind_integer(statement, COLUMN_LEASE_REVISION, row->lease_revision);
    sqlite3_bind_blob(statement, COLUMN_VALUE + 1, row->value.size > 0 ? row->value.data : "", (int)row->value.size,
                      SQLITE_STATIC);
    bind_integer(statement, COLUMN_VALUE_REVISION, row->value_revision);
    bind_name(statement, COLUMN_LAST_HOLDER, row->last_holder);
    bind_integer(statement, COLUMN_LAST_EPOCH_HELD, row->last_epoch_held);
    sqlite3_bind_blob(statement, COLUMN_REQUEST_ID + 1, row->applied.request_id, sizeof row->applied.request_id,
                      SQLITE_STATIC);
    bind_name(statement, COLUMN_REQUEST_CALLER, row->applied.caller);
    bind_integer(statement, COLUMN_REQUEST_KIND, (int64_t)row->applied.kind);
    bind_integer(statement, COLUMN_REQUEST_TAKEOVER, row->applied.takeover);
    bind_integer(statement, COLUMN_REQUEST_EPOCH, row->applied.epoch);
    bind_integer(statement, COLUMN_CHECKSUM, (int64_t)aster_row_checksum(resource, row));
}

aster_status aster_row_store(struct aster_connection *connection, struct aster_bytes resource,
                             const struct aster_stored_row *stored, const struct aster_boot *boot, bool update,
                             struct aster_error *error)
{
    int which = update ? ASTER_STATEMENT_ROW_UPDATE : ASTER_STATEMENT_ROW_INSERT;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, which, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    bind_row(statement, resource, &stored->row);
    bind_integer(statement, COLUMN_GRANTED_AT, aster_boot_to_stored(boot, stored->granted_at_ns));
    sqlite3_bind_text(statement, COLUMN_BOOT_ID + 1, boot->id, -1, SQLITE_STATIC);
    bind_integer(statement, COLUMN_SINCE, stored->since_unix_ms);
    status = aster_connection_run(connection, which, error);
    sqlite3_clear_bindings(statement);
    return status;
}

aster_status aster_row_delete(struct aster_connection *connection, struct aster_bytes resource,
                              struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_ROW_DELETE, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_text(statement, 1, resource.data, (int)resource.size, SQLITE_TRANSIENT);
    return aster_connection_run(connection, ASTER_STATEMENT_ROW_DELETE, error);
}

static int64_t remaining_ns(const struct aster_stored_row *stored, int64_t now_ns)
{
    int64_t left = aster_ms_to_ns(stored->row.ttl_ms) - (now_ns - stored->granted_at_ns);
    return stored->row.held && left > 0 ? left : 0;
}

bool aster_stored_row_expired(const struct aster_stored_row *stored, int64_t now_ns)
{
    return stored->row.held && remaining_ns(stored, now_ns) == 0;
}

void aster_stored_row_snapshot(struct aster_bytes resource, const struct aster_stored_row *stored, int64_t now_ns,
                               struct aster_snapshot *snapshot)
{
    const struct aster_row *row = &stored->row;
    *snapshot = (struct aster_snapshot){
        .resource = resource,
        .epoch = row->epoch,
        .held = row->held,
        .holder = row->holder,
        .ttl_ms = row->ttl_ms,
        .remaining_ns = remaining_ns(stored, now_ns),
        .since_unix_ms = row->held ? stored->since_unix_ms : 0,
        .lease_revision = row->lease_revision,
        .value = row->value,
        .value_revision = row->value_revision,
        .last_holder = row->last_holder,
        .last_epoch_held = row->last_epoch_held,
    };
}
