/* One connection to PostgreSQL, whose every wait has an end. One thread at a time. */
#ifndef POSTGRES_CONNECTION_H
#define POSTGRES_CONNECTION_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"

#define ASTER_PG_ROLE_MAX 64 /* NAMEDATALEN */
#define ASTER_PG_SCHEMA_VERSION 1

/* What every connection of a store is made with. */
struct aster_pg_place {
    char *conninfo;
    int64_t connect_timeout_ms;
};

/* What a connection is for decides its session's settings. */
struct aster_pg_use {
    int64_t statement_timeout_ms;
    int64_t lock_timeout_ms; /* 0 = only the statement's */
    bool listens;            /* LISTEN aster_freed */
};

struct aster_pg {
    PGconn *conn; /* NULL = not connected */
    struct aster_pg_use use;
    bool pooled;   /* a pooler answers: no prepared statements, no settings of the session, no LISTEN */
    bool prepared; /* the statement for batches is there */
    char role[ASTER_PG_ROLE_MAX];
};

/* Connect, look at the schema's version and at who answers, and set the session up. Errors: ASTER_ERR_UNREACHABLE,
 * ASTER_ERR_INVALID, ASTER_ERR_VERSION, ASTER_ERR_NOMEM. */
aster_status aster_pg_connect(struct aster_pg *pg, const struct aster_pg_place *place, const struct aster_pg_use *use,
                              struct aster_error *error);

/* Forget the connection, whatever state it is in. Legal on one that is not connected. */
void aster_pg_close(struct aster_pg *pg);

/* The next result of what was sent, NULL = there is no other. Waits until `until_ns` (CLOCK_BOOTTIME), then gives up.
 * Errors: ASTER_ERR_TIMEOUT and ASTER_ERR_UNREACHABLE: what was sent may or may not have been applied, and the
 * connection is good for nothing any more. */
aster_status aster_pg_result(struct aster_pg *pg, int64_t until_ns, PGresult **result, struct aster_error *error);

/* Read away what is left of the results until `until_ns`, keeping the first error. Returns whether the connection is
 * idle again. */
bool aster_pg_drain(struct aster_pg *pg, int64_t until_ns);

/* Run statements without parameters; their results are read away. Errors: as aster_pg_result(), and as
 * aster_pg_fault(). `tag` (optional) gets the command tag of the last one. */
aster_status aster_pg_run(struct aster_pg *pg, const char *sql, int64_t until_ns, char tag[32],
                          struct aster_error *error);

#endif
