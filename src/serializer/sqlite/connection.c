#include "serializer/sqlite/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "aster/sys/clock.h"
#include "base/checked.h"
#include "base/error.h"
#include "platform/entropy.h"
#include "platform/files.h"

#define BACKOFF_FIRST_NS INT64_C(100000) /* a commit of another process takes about a sync */
#define BACKOFF_LAST_NS INT64_C(10000000)

static aster_status refuse_unwritable(const char *path, int os_error, struct aster_error *error)
{
    return aster_error_set_os(error, ASTER_ERR_IO, os_error,
                              "%s cannot be written by this user; leases need write access to the file and its "
                              "directory",
                              path);
}

static aster_status fault_of_file(const char *path, int code, int os_error, struct aster_error *error)
{
    if (os_error == EACCES || os_error == EPERM || os_error == EROFS) {
        return refuse_unwritable(path, os_error, error);
    }
    return aster_error_set_os(error, ASTER_ERR_IO, os_error,
                              "%s cannot be used (%s, code %d), nothing was applied; check the disk and the file's "
                              "permissions",
                              path, sqlite3_errstr(code), code);
}

static aster_status fault_of_lock(const struct aster_connection *connection, const char *path,
                                  struct aster_error *error)
{
    struct aster_lock_owner owner;
    /* In WAL mode only who has the file for itself locks the file for writing; the others lock its -shm. */
    if (aster_file_lock_owner(connection->path, &owner)) {
        return aster_error_set(error, ASTER_ERR_BUSY,
                               "process %ld (%s) has had %s locked for itself for more than %" PRId64
                               " ms: nothing was applied; ask that program, end it, or name another file",
                               owner.pid, owner.name, path, connection->busy_timeout_ms);
    }
    return aster_error_set(error, ASTER_ERR_BUSY,
                           "another process has held the write lock of %s for more than %" PRId64
                           " ms: nothing was applied; retry, and look for a long transaction in a program that has "
                           "the file open",
                           path, connection->busy_timeout_ms);
}

aster_status aster_connection_fault(struct aster_connection *connection, int code, struct aster_error *error)
{
    int os_error = connection->db != NULL ? sqlite3_system_errno(connection->db) : 0;
    char path[ASTER_PRINTABLE_MAX];
    aster_printable(aster_text(connection->path), path);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* lost too many races for the log's locks in a row */
        return fault_of_lock(connection, path, error);
    case SQLITE_FULL:
        return aster_error_set(error, ASTER_ERR_IO,
                               "the disk of %s or the database is full: nothing was applied; free space and retry",
                               path);
    case SQLITE_NOTADB:
        return aster_error_set(error, ASTER_ERR_CORRUPT, "%s is not a SQLite database; name another file", path);
    case SQLITE_CORRUPT:
        return aster_error_set(error, ASTER_ERR_CORRUPT,
                               "%s is damaged (%s); run PRAGMA integrity_check, restore it from a copy", path,
                               sqlite3_errstr(code));
    case SQLITE_NOMEM:
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory in the database: nothing was applied");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return refuse_unwritable(path, 0, error);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return fault_of_file(path, code, os_error, error);
    default:
        return aster_error_set(error, ASTER_ERR_IO, "the database %s refused (%s, code %d): nothing was applied", path,
                               connection->db != NULL ? sqlite3_errmsg(connection->db) : sqlite3_errstr(code), code);
    }
}

/* Short at first, growing, never in step with the other waiters. */
static int64_t backoff_ns(struct aster_connection *connection, int attempt)
{
    int64_t step = attempt < 7 ? BACKOFF_FIRST_NS << attempt : BACKOFF_LAST_NS;
    connection->jitter ^= connection->jitter << 13;
    connection->jitter ^= connection->jitter >> 7;
    connection->jitter ^= connection->jitter << 17;
    return step / 2 + (int64_t)(connection->jitter % (uint64_t)step);
}

static int wait_for_other(void *user, int attempt)
{
    struct aster_connection *connection = user;
    int64_t left = connection->busy_until_ns - aster_clock_now_ns(aster_clock_system());
    if (left <= 0) {
        return 0;
    }
    int64_t pause = backoff_ns(connection, attempt);
    aster_pause_ns(pause < left ? pause : left);
    return 1;
}

void aster_connection_wait_for(struct aster_connection *connection, int64_t ms)
{
    connection->busy_until_ns = aster_add_saturated(aster_clock_now_ns(aster_clock_system()), aster_ms_to_ns(ms));
}

aster_status aster_connection_execute(struct aster_connection *connection, const char *sql, struct aster_error *error)
{
    int code = sqlite3_exec(connection->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? ASTER_OK : aster_connection_fault(connection, code, error);
}

/* What a query answers first, cut to `size`; nothing leaves `answer` alone. */
static aster_status ask(struct aster_connection *connection, const char *sql, char *answer, int size,
                        struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    if (code == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        sqlite3_snprintf(size, answer, "%s", (const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? ASTER_OK : aster_connection_fault(connection, code, error);
}

aster_status aster_connection_ask(struct aster_connection *connection, const char *sql, int64_t *answer,
                                  struct aster_error *error)
{
    char text[32] = "0";
    aster_status status = ask(connection, sql, text, sizeof text, error);
    if (status == ASTER_OK) {
        *answer = strtoll(text, NULL, 10);
    }
    return status;
}

static aster_status set_up(struct aster_connection *connection, const char *path, struct aster_error *error)
{
    char answer[32] = "";
    if (sqlite3_db_readonly(connection->db, "main") == 1) {
        return refuse_unwritable(path, 0, error);
    }
    aster_status status = ask(connection, "PRAGMA journal_mode=WAL", answer, sizeof answer, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (sqlite3_stricmp(answer, "wal") != 0) {
        return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                               "%s cannot be put into WAL mode (it stays in %s): use a plain file on a local disk",
                               path, answer);
    }
    status = ask(connection, "PRAGMA encoding", answer, sizeof answer, error);
    if (status == ASTER_OK && sqlite3_stricmp(answer, "UTF-8") != 0) {
        status = aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                                 "%s is encoded in %s: names are compared as UTF-8 bytes; use a UTF-8 database", path,
                                 answer);
    }
    if (status == ASTER_OK) {
        connection->synced = true;
        status = aster_connection_execute(connection, "PRAGMA synchronous=FULL", error);
    }
    return status;
}

aster_status aster_connection_open(struct aster_connection *connection, const struct aster_connection_setup *setup,
                                   struct aster_error *error)
{
    struct aster_connection made = {.path = setup->path,
                                    .busy_timeout_ms = setup->busy_timeout_ms,
                                    .needs_rescue = setup->needs_rescue,
                                    .texts = setup->texts};
    aster_status status = aster_entropy_fill(&made.jitter, sizeof made.jitter, error);
    if (status != ASTER_OK) {
        return status;
    }
    made.jitter |= 1; /* xorshift stays at 0 for ever */
    *connection = made;
    int code = sqlite3_open_v2(setup->path, &connection->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_PRIVATECACHE, NULL);
    if (code != SQLITE_OK) {
        status = aster_connection_fault(connection, code, error);
        aster_connection_fini(connection);
        return status;
    }
    sqlite3_extended_result_codes(connection->db, 1);
    sqlite3_busy_handler(connection->db, wait_for_other, connection);
    aster_connection_wait_for(connection, setup->busy_timeout_ms);
    if (setup->exclusive) { /* before the first look at the file, which takes the lock */
        status = aster_connection_execute(connection, "PRAGMA locking_mode=EXCLUSIVE", error);
    }
    if (status == ASTER_OK) {
        status = setup->accept(connection, error);
    }
    if (status == ASTER_OK) {
        status = set_up(connection, setup->path, error);
    }
    if (status != ASTER_OK) {
        aster_connection_fini(connection);
    }
    return status;
}

void aster_connection_fini(struct aster_connection *connection)
{
    for (int i = 0; i < ASTER_STATEMENTS_MAX; i++) {
        sqlite3_finalize(connection->statements[i]);
    }
    sqlite3_close_v2(connection->db);
    *connection = (struct aster_connection){0};
}

aster_status aster_connection_statement(struct aster_connection *connection, int which, sqlite3_stmt **statement,
                                        struct aster_error *error)
{
    sqlite3_stmt **slot = &connection->statements[which];
    if (*slot == NULL) {
        int code =
            sqlite3_prepare_v3(connection->db, connection->texts[which], -1, SQLITE_PREPARE_PERSISTENT, slot, NULL);
        if (code != SQLITE_OK) {
            return aster_connection_fault(connection, code, error);
        }
    }
    sqlite3_reset(*slot);
    *statement = *slot;
    return ASTER_OK;
}

aster_status aster_connection_run(struct aster_connection *connection, int which, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, which, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE || code == SQLITE_ROW ? ASTER_OK : aster_connection_fault(connection, code, error);
}

aster_status aster_connection_begin_read(struct aster_connection *connection, struct aster_error *error)
{
    return aster_connection_run(connection, ASTER_STATEMENT_BEGIN_READ, error);
}

/* After a failed sync the kernel may have dropped pages of the log that it had taken, among them unsynced renewals in
 * front of what is committed next; recovery would stop reading at the hole. Copying the whole log into the database
 * file and emptying it makes what follows independent of those pages. */
static aster_status rescue(struct aster_connection *connection, struct aster_error *error)
{
    int code = sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (code != SQLITE_OK) {
        return aster_connection_fault(connection, code, error);
    }
    *connection->needs_rescue = false;
    return ASTER_OK;
}

/* Whoever opens the path next would find, or make, another file: leases in this one would exclude nobody. */
static aster_status check_in_place(struct aster_connection *connection, struct aster_error *error)
{
    int moved = 0;
    if (sqlite3_file_control(connection->db, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved) {
        return aster_error_set(error, ASTER_ERR_IO,
                               "the database file was deleted, moved or replaced while it was open: nothing was "
                               "applied; put it back, or open the store again");
    }
    return ASTER_OK;
}

aster_status aster_connection_begin_write(struct aster_connection *connection, bool synced, struct aster_error *error)
{
    aster_status status = check_in_place(connection, error);
    if (status == ASTER_OK && *connection->needs_rescue) {
        status = rescue(connection, error);
    }
    if (status == ASTER_OK && synced != connection->synced) {
        status = aster_connection_execute(connection, synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                                          error);
        connection->synced = status == ASTER_OK ? synced : connection->synced;
    }
    if (status == ASTER_OK) {
        status = aster_connection_run(connection, ASTER_STATEMENT_BEGIN_WRITE, error);
    }
    return status;
}

aster_status aster_connection_commit(struct aster_connection *connection, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, ASTER_STATEMENT_COMMIT, &statement, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return status;
    }
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE) {
        sqlite3_reset(statement);
        return ASTER_OK;
    }
    status = aster_connection_fault(connection, code, error);
    if ((code & 0xff) == SQLITE_IOERR) {
        *connection->needs_rescue = true;
        status = aster_error_set_os(error, ASTER_ERR_INDETERMINATE, sqlite3_system_errno(connection->db),
                                    "the commit failed while it was written (%s, code %d): it may or may not survive a "
                                    "crash; retry under the same request id",
                                    sqlite3_errstr(code), code);
    }
    sqlite3_reset(statement);
    aster_connection_rollback(connection);
    return status;
}

void aster_connection_rollback(struct aster_connection *connection)
{
    /* Some failures have rolled back already. */
    if (connection->db != NULL && sqlite3_get_autocommit(connection->db) == 0) {
        aster_connection_run(connection, ASTER_STATEMENT_ROLLBACK, NULL);
    }
}

void aster_connection_checkpoint(struct aster_connection *connection)
{
    sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}
