#include <inttypes.h>

#include "base/error.h"
#include "journal/sqlite/internal.h"

#define SCHEMA_VERSION 1

/* Text of a macro's value. */
#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* A journal, or a file in which there is nothing yet. */
aster_status aster_sqlite_journal_accept(struct aster_connection *connection, struct aster_error *error)
{
    int64_t application = 0;
    int64_t tables = 0;
    aster_status status = aster_connection_ask(connection, "PRAGMA application_id", &application, error);
    if (status == ASTER_OK && application == ASTER_JOURNAL_APPLICATION_ID) {
        return ASTER_OK;
    }
    if (status == ASTER_OK) {
        status = aster_connection_ask(connection, "SELECT count(*) FROM sqlite_schema", &tables, error);
    }
    if (status == ASTER_OK && (application != 0 || tables != 0)) {
        char path[ASTER_PRINTABLE_MAX];
        status =
            aster_error_set(error, ASTER_ERR_INVALID,
                            "%s is a database of another kind and no journal: name another file (a store of leases "
                            "is served with store = \"sqlite:PATH\")",
                            aster_printable(aster_text(connection->path), path));
    }
    /* A page of the file system: a small entry writes one. Takes effect in an empty file. */
    return status == ASTER_OK ? aster_connection_execute(connection, "PRAGMA page_size=4096", error) : status;
}

static aster_status create(struct aster_connection *connection, struct aster_error *error)
{
    static const char marks[] =
        "PRAGMA application_id=" TEXT(ASTER_JOURNAL_APPLICATION_ID) ";"
                                                                    "PRAGMA user_version=" TEXT(SCHEMA_VERSION);
    aster_status status = aster_connection_begin_write(connection, true, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_connection_execute(connection, aster_sqlite_journal_schema, error);
    if (status == ASTER_OK) {
        status = aster_connection_execute(connection, marks, error);
    }
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return status;
    }
    return aster_connection_commit(connection, error);
}

aster_status aster_sqlite_journal_prepare(struct aster_connection *connection, struct aster_error *error)
{
    int64_t version = 0;
    aster_status status = aster_connection_ask(connection, "PRAGMA user_version", &version, error);
    if (status == ASTER_OK && version > SCHEMA_VERSION) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "the journal was written by a newer Aster (version %" PRId64
                               ", this build knows %d): use that version",
                               version, SCHEMA_VERSION);
    }
    if (status == ASTER_OK && version == 0) {
        status = create(connection, error);
    }
    /* Nothing in it is secret: do not spend writes on wiping what is folded. It is read at the start only: what the
     * cache holds is memory that leases could have. */
    return status == ASTER_OK
               ? aster_connection_execute(connection, "PRAGMA secure_delete=OFF; PRAGMA cache_size=-512", error)
               : status;
}

aster_status aster_sqlite_journal_meta_get(struct sqlite_journal *journal, struct sqlite_journal_meta *meta,
                                           struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_META_GET, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = sqlite3_step(statement);
    const struct sqlite_journal_meta read = {sqlite3_column_int64(statement, 0), sqlite3_column_int64(statement, 1)};
    sqlite3_reset(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        return aster_connection_fault(&journal->connection, code, error);
    }
    if (code == SQLITE_DONE || read.folded < 0 || read.floor < 0) {
        return aster_error_set(error, ASTER_ERR_CORRUPT,
                               "the journal's table meta has no usable row: restore the file from a copy");
    }
    *meta = read;
    return ASTER_OK;
}

aster_status aster_sqlite_journal_meta_put(struct sqlite_journal *journal, const struct sqlite_journal_meta *meta,
                                           struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_META_PUT, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    sqlite3_bind_int64(statement, 1, meta->folded);
    sqlite3_bind_int64(statement, 2, meta->floor);
    return aster_connection_run(&journal->connection, JOURNAL_META_PUT, error);
}
