/* One database connection: how it is set up, how long it waits for other processes, its prepared statements, and what
 * its failures mean. A connection is used by one thread at a time. */
#ifndef SQLITE_CONNECTION_H
#define SQLITE_CONNECTION_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"

/* Prepared statements are numbered by their user, behind those that every connection has. */
enum aster_shared_statement {
    ASTER_STATEMENT_BEGIN_READ,
    ASTER_STATEMENT_BEGIN_WRITE,
    ASTER_STATEMENT_COMMIT,
    ASTER_STATEMENT_ROLLBACK,
    ASTER_STATEMENT_OWN, /* the user's first */
    ASTER_STATEMENTS_MAX = 20
};
#define ASTER_SHARED_STATEMENT_TEXTS                                                                                   \
    [ASTER_STATEMENT_BEGIN_READ] = "BEGIN", [ASTER_STATEMENT_BEGIN_WRITE] = "BEGIN IMMEDIATE",                         \
    [ASTER_STATEMENT_COMMIT] = "COMMIT", [ASTER_STATEMENT_ROLLBACK] = "ROLLBACK"

/* PRAGMA application_id of a grantor's journal: such a file is no store, and a store is no journal. */
#define ASTER_JOURNAL_APPLICATION_ID 0x4173744a

struct aster_connection;

struct aster_connection_setup {
    const char *path; /* an existing file; outlives the connection */
    int64_t busy_timeout_ms;
    bool *needs_rescue;       /* shared by the writing connections of one process, which take turns */
    const char *const *texts; /* by number of statement: the shared ones and the user's */
    bool exclusive;           /* nobody else may open the file while it is open here */
    /* Look at the file before anything in it is changed; a failure ends the opening. */
    aster_status (*accept)(struct aster_connection *connection, struct aster_error *error);
};

struct aster_connection {
    sqlite3 *db;      /* NULL = not open */
    const char *path; /* borrowed, for messages */
    const char *const *texts;
    sqlite3_stmt *statements[ASTER_STATEMENTS_MAX];
    int64_t busy_until_ns;   /* on the system clock; past = do not wait for another process's lock */
    int64_t busy_timeout_ms; /* for messages */
    uint64_t jitter;
    bool synced;        /* commits are synced (synchronous=FULL) */
    bool *needs_rescue; /* a sync failed; shared by the writing connections of one store */
};

/* Open a file in WAL mode. `*connection` must be zero or finished. */
aster_status aster_connection_open(struct aster_connection *connection, const struct aster_connection_setup *setup,
                                   struct aster_error *error);
void aster_connection_fini(struct aster_connection *connection);

/* Wait up to `ms` from now for locks of other processes; 0 = not at all. */
void aster_connection_wait_for(struct aster_connection *connection, int64_t ms);

/* The prepared statement, reset and without bindings. Owned by the connection. */
aster_status aster_connection_statement(struct aster_connection *connection, int which, sqlite3_stmt **statement,
                                        struct aster_error *error);

/* Step a statement that returns no row, and reset it. */
aster_status aster_connection_run(struct aster_connection *connection, int which, struct aster_error *error);

/* Run SQL text, for set-up. */
aster_status aster_connection_execute(struct aster_connection *connection, const char *sql, struct aster_error *error);

/* The integer that a query answers first; 0 when it answers nothing. */
aster_status aster_connection_ask(struct aster_connection *connection, const char *sql, int64_t *answer,
                                  struct aster_error *error);

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
