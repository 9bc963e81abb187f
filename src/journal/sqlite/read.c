#include <inttypes.h>

#include "base/error.h"
#include "engine/codec.h"
#include "journal/sqlite/internal.h"

aster_status aster_sqlite_journal_entries(struct sqlite_journal *journal, int64_t folded,
                                          sqlite_journal_visit_entry visit, void *user, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_ENTRY_LIST, &statement, error);
    bool more = true;
    int code = SQLITE_DONE;
    int64_t next = folded + 1;
    while (status == ASTER_OK && more && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        int64_t position = sqlite3_column_int64(statement, 0);
        if (position != next) {
            status = aster_error_set(error, ASTER_ERR_CORRUPT,
                                     "the journal has entry %" PRId64 " where entry %" PRId64
                                     " should be: restore the file from a copy",
                                     position, next);
        } else {
            status = visit(user, position, sqlite_journal_blob(statement, 1), &more, error);
        }
        next++;
    }
    if (status == ASTER_OK && more && code != SQLITE_DONE) {
        status = aster_connection_fault(&journal->connection, code, error);
    }
    sqlite3_reset(statement);
    return status;
}

aster_status aster_sqlite_journal_records(int64_t position, struct aster_bytes entry, sqlite_journal_visit_record visit,
                                          void *user, struct aster_error *error)
{
    struct aster_entry_reader reader;
    struct aster_record record;
    bool found = true;
    struct aster_error detail = ASTER_ERROR_INIT;
    aster_status status = aster_entry_open(entry, &reader, &detail);
    while (status == ASTER_OK) {
        status = aster_entry_next(&reader, &record, &found, &detail);
        if (status != ASTER_OK || !found) {
            break;
        }
        aster_status visited = visit(user, &record, error);
        if (visited != ASTER_OK) {
            return visited;
        }
    }
    if (status != ASTER_OK) {
        return aster_error_set(error, status, "entry %" PRId64 " of the journal cannot be read: %.300s", position,
                               detail.message);
    }
    return ASTER_OK;
}

aster_status aster_sqlite_journal_read_row(sqlite3_stmt *statement, struct aster_bytes *resource, struct aster_row *row,
                                           struct aster_error *error)
{
    struct aster_bytes key = sqlite_journal_blob(statement, 0);
    struct aster_error detail = ASTER_ERROR_INIT;
    char name[ASTER_PRINTABLE_MAX];
    aster_status status = aster_row_decode(sqlite_journal_blob(statement, 1), resource, row, &detail);
    if (status == ASTER_OK && !aster_bytes_equal(key, *resource)) {
        status = aster_error_set(&detail, ASTER_ERR_CORRUPT, "it is the row of another resource");
    }
    if (status != ASTER_OK) {
        return aster_error_set(error, status, "the journal's row of %s cannot be read: %.200s",
                               aster_printable(key, name), detail.message);
    }
    return ASTER_OK;
}

/* A stored row with a copy of its value; the names are of no interest here. *found is false when there is none. */
static aster_status read_base(struct sqlite_journal *journal, struct aster_bytes name, struct aster_row *base,
                              bool *found, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_ROW_GET, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite_journal_bind(statement, 1, name);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        struct aster_bytes resource;
        status = aster_sqlite_journal_read_row(statement, &resource, base, error);
    } else if (code != SQLITE_DONE) {
        status = aster_connection_fault(&journal->connection, code, error);
    }
    *found = code == SQLITE_ROW;
    if (status == ASTER_OK && *found && base->value.size > 0) {
        memcpy(journal->value_bytes, base->value.data, base->value.size);
        base->value.data = journal->value_bytes;
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

aster_status aster_sqlite_journal_whole_row(struct sqlite_journal *journal, const struct aster_folded *folded,
                                            struct aster_row *row, struct aster_error *error)
{
    struct aster_row base;
    bool found = false;
    aster_status status = ASTER_OK;
    if (aster_folded_needs_base(folded)) {
        status = read_base(journal, folded->resource, &base, &found, error);
    }
    return status == ASTER_OK ? aster_folded_row(folded, found ? &base : NULL, row, error) : status;
}
