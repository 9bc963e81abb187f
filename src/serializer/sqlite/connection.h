/* One database connection: how it is set up, how long it waits for other processes, its prepared statements, and what
 * its failures mean. A connection is used by one thread at a time. */
#ifndef SQLITE_CONNECTION_H
#define SQLITE_CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"

enum aster_statement {
    ASTER_STATEMENT_BEGIN_READ,
    ASTER_STATEMENT_BEGIN_WRITE,
    ASTER_STATEMENT_COMMIT,
    ASTER_STATEMENT_ROLLBACK,
    ASTER_STATEMENT_ROW_LOAD,
    ASTER_STATEMENT_ROW_LIST,
    ASTER_STATEMENT_ROW_INSERT,
    ASTER_STATEMENT_ROW_UPDATE,
    ASTER_STATEMENT_ROW_ARM,
    ASTER_STATEMENT_ROW_DELETE,
    ASTER_STATEMENT_META_LOAD,
    ASTER_STATEMENT_META_STORE,
    ASTER_STATEMENT_AUDIT_INSERT,
    ASTER_STATEMENT_AUDIT_PRUNE,
    ASTER_STATEMENT_AUDIT_READ,
    ASTER_STATEMENT_COUNT
};

struct aster_connection {
    sqlite3 *db;      /* NULL = not open */
    const char *path; /* borrowed, for messages */
    sqlite3_stmt *statements[ASTER_STATEMENT_COUNT];
    int64_t busy_until_ns;   /* on the system clock; past = do not wait for another process's lock */
    int64_t busy_timeout_ms; /* for messages */
    uint64_t jitter;
    bool synced;        /* commits are synced (synchronous=FULL) */
    bool *needs_rescue; /* a sync failed; shared by the writing connections of one store */
};

/* Open the existing file `path`, which must outlive the connection, in WAL mode. `*connection` must be zero or
 * finished. `*needs_rescue` is shared by the writing connections of one process, which take turns. */
aster_status aster_connection_open(struct aster_connection *connection, const char *path, int64_t busy_timeout_ms,
                                   bool *needs_rescue, struct aster_error *error);
void aster_connection_fini(struct aster_connection *connection);

/* Wait up to `ms` from now for locks of other processes; 0 = not at all. */
void aster_connection_wait_for(struct aster_connection *connection, int64_t ms);

/* The prepared statement, reset and without bindings. Owned by the connection. */
aster_status aster_connection_statement(struct aster_connection *connection, enum aster_statement which,
                                        sqlite3_stmt **statement, struct aster_error *error);

/* Step a statement that returns no row, and reset it. */
aster_status aster_connection_run(struct aster_connection *connection, enum aster_statement which,
                                  struct aster_error *error);

/* Run SQL text, for set-up. */
aster_status aster_connection_execute(struct aster_connection *connection, const char *sql, struct aster_error *error);

/* Begin a transaction. For a write, `synced` says whether the commit must be synced. ASTER_ERR_BUSY: another process
 * has the write lock. */
aster_status aster_connection_begin_read(struct aster_connection *connection, struct aster_error *error);
aster_status aster_connection_begin_write(struct aster_connection *connection, bool synced, struct aster_error *error);

/* Commit; on failure the transaction is rolled back. ASTER_ERR_IO: nothing was applied. ASTER_ERR_INDETERMINATE: it is
 * not visible now, but its pages may have reached the disk. */
aster_status aster_connection_commit(struct aster_connection *connection, struct aster_error *error);
void aster_connection_rollback(struct aster_connection *connection);

/* Move what the log holds into the database file, without waiting, so that the log starts again at its beginning: on a
 * full disk its space is what is left. */
void aster_connection_checkpoint(struct aster_connection *connection);

/* The status and message of a failed call that returned `code`. */
aster_status aster_connection_fault(struct aster_connection *connection, int code, struct aster_error *error);

#endif
