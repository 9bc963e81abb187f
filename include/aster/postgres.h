/* The PostgreSQL serializer (library aster-postgres): leases in the user's own PostgreSQL 13 or newer, whose schema
 * `aster` is applied once by its owner (`aster schema apply postgres`, or aster_postgres_schema() through psql), and
 * fenced writes in the same transaction as the user's data. docs/postgres.md has the whole picture.
 *
 * The database's clock decides about expiry. A caller is an instance of the role that logs in: the row's holder is
 * "role/caller", answers show it without "role/" when it is this connection's own role, and instances of one role trust
 * each other. Requests that wait share one statement and its commit; renewals go first, on a connection of their own,
 * and their commit is not waited for (a crash re-arms every row). Works behind PgBouncer in transaction mode, which is
 * found out by itself; there, waiting polls, as LISTEN needs a session. */
#ifndef ASTER_POSTGRES_H
#define ASTER_POSTGRES_H

#include <libpq-fe.h>

#include "aster/serializer.h"

ASTER_BEGIN_DECLS

struct aster_postgres_options {
    size_t struct_size;
    struct aster_limits limits;   /* ttl and value; the schema's own limits (table aster.meta) hold as well */
    int64_t connect_timeout_ms;   /* default 5 s, 100..60,000 */
    int64_t statement_timeout_ms; /* of one statement of Aster's: default 2 s, 100..60,000. Keep it below the shortest
                                     ttl - margin, so that a renewal that hangs can be repeated in time */
    int64_t write_timeout_ms;     /* of each statement of a fenced write, and of a read: default 10 s, 100..600,000 */
    int64_t poll_ms;              /* waiting without LISTEN: try again about this often; default 250, 10..60,000 */
    size_t queue_max;             /* requests waiting for a connection; more are refused with ASTER_ERR_LIMIT */
    size_t batch_max;             /* requests that share one statement; default 256, 1..4,096 */
    size_t writers_max;           /* fenced writes and reads at the same time, a connection each; default 8, 1..1,000 */
};

#define ASTER_POSTGRES_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(struct aster_postgres_options), ASTER_LIMITS_INIT, 5000, 2000, 10000, 250, 65536, 256, 8                \
    }

/* Open the schema in the database that `conninfo` names: a libpq connection string or URI, postgresql://.... options
 * may be NULL. Connects once, to check the schema; connections are made as they are needed and made again when they
 * break. A request whose connection broke is repeated under its id, and answered ASTER_ERR_INDETERMINATE when that
 * fails too. Fenced writes get the `PGconn *` of an open transaction as tx, with the fence declared and the row locked
 * against a takeover; do not COMMIT, ROLLBACK, reset or finish it. An expired lease is refused with EXPIRED.
 * Errors: ASTER_ERR_INVALID (conninfo, options, no schema, no rights), ASTER_ERR_UNREACHABLE, ASTER_ERR_VERSION (the
 * schema is of another version). */
ASTER_API aster_status aster_postgres_open(const char *conninfo, const struct aster_postgres_options *options,
                                           struct aster_serializer **serializer, struct aster_error *error);

/* The SQL text of the schema, for psql or any other client: one transaction, safe to apply again. Static; thread-safe.
 */
ASTER_API const char *aster_postgres_schema(void);

ASTER_END_DECLS

#endif
