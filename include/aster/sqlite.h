/* The SQLite serializer (library aster-sqlite): leases in the user's own database file, shared by many processes of
 * one host, and fenced writes in the same transaction as the user's data.
 *
 * Tables aster_lease, aster_audit and aster_meta are created beside the user's. Every decision is one BEGIN IMMEDIATE
 * transaction in WAL mode. A grant, release, revoke or put is answered only after it is synced (synchronous=FULL);
 * requests that wait share a commit. A renewal is not synced: losing one in a power cut costs nothing, because a row
 * that another boot granted is re-armed with a full ttl. Intervals run on CLOCK_BOOTTIME, stored with the boot id.
 * Whoever may write the file is trusted to name its own identity; use a grantor where that is not enough. */
#ifndef ASTER_SQLITE_H
#define ASTER_SQLITE_H

#include <sqlite3.h>

#include "aster/serializer.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

struct aster_sqlite_options {
    size_t struct_size;
    const struct aster_clock *clock; /* NULL = the system clock; all processes on a file must use the same clock */
    struct aster_limits limits;
    int64_t busy_timeout_ms;       /* how long a transaction waits for another process's write lock before it
                                      answers ASTER_ERR_BUSY; default 1 s, 0..60 s */
    int64_t history_max;           /* audit rows kept; default 10,000; 0 = none */
    size_t queue_max;              /* requests waiting for a commit; more are refused with ASTER_ERR_LIMIT */
    size_t batch_max;              /* requests that share one commit; default 1,024 */
    bool create;                   /* create the file (mode 0600) when it is missing; default true */
    bool allow_network_filesystem; /* default false: WAL's shared memory does not work across machines */
    aster_authorizer authorize;    /* NULL = everything is allowed */
    void *authorize_user;
};

#define ASTER_SQLITE_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(struct aster_sqlite_options), NULL, ASTER_LIMITS_INIT, 1000, 10000, 65536, 1024, true, false, NULL,     \
            NULL                                                                                                       \
    }

/* Open or create the store in `path`. options may be NULL. Fenced writes get the `sqlite3 *` of an open transaction as
 * tx (do not COMMIT or ROLLBACK it); it has the functions of aster_sqlite_register() and the fence already declared.
 * Errors: ASTER_ERR_INVALID (path, options, network file system), ASTER_ERR_IO, ASTER_ERR_BUSY, ASTER_ERR_CORRUPT,
 * ASTER_ERR_VERSION (schema written by a newer Aster), ASTER_ERR_FORKED (the parent had the file open at the fork:
 * SQLite cannot be trusted with it before exec()). */
ASTER_API aster_status aster_sqlite_open(const char *path, const struct aster_sqlite_options *options,
                                         struct aster_serializer **serializer, struct aster_error *error);

/* Give the SQL functions of the guard to the application's own connection, as loading the extension aster.so does:
 *   aster_fence(resource, epoch, holder)  declare the fence of this connection for a resource; returns the epoch
 *   aster_fence(text)                     the same from the text of aster_fence_format(), as in ASTER_FENCE
 *   aster_unfence(resource)               take the declaration back
 *   aster_guard__load_aster_extension()   called by the triggers of aster_sqlite_protect_sql(); a program that lacks it
 *                                         fails closed with "no such function: ", and the name says what to do
 * Errors: ASTER_ERR_IO. Thread-safety: the connection's. */
ASTER_API aster_status aster_sqlite_register(sqlite3 *db, struct aster_error *error);

/* SQL text (triggers) that lets INSERT, UPDATE and DELETE on `table` through only under the current fence of
 * `resource`. With `row_column` (else NULL) every row has a resource of its own: `resource` followed by the text of
 * that column, for example "invoice/" and "id"; an update needs the fence of the row as it was and as it becomes. The
 * caller frees it with sqlite3_free(). Errors: ASTER_ERR_INVALID (a name), ASTER_ERR_NOMEM. Pure. */
ASTER_API aster_status aster_sqlite_protect_sql(const char *table, struct aster_bytes resource, const char *row_column,
                                                char **sql, struct aster_error *error);

/* SQL text of Aster's own tables, as aster_sqlite_open() creates them. Static; thread-safe. */
ASTER_API const char *aster_sqlite_schema(void);

ASTER_END_DECLS

#endif
