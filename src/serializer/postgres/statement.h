/* The one statement that decides a batch: requests as arrays in, decisions as rows out, in one round trip and one
 * transaction. */
#ifndef POSTGRES_STATEMENT_H
#define POSTGRES_STATEMENT_H

#include "aster/sys/serializer.h"
#include "serializer/postgres/array.h"
#include "serializer/postgres/connection.h"

#define ASTER_PG_PARAMETERS 11

/* The parameters of one batch; the memory is used again for the next. Zero-initialise. */
struct aster_pg_statement {
    struct aster_pg_array arrays[ASTER_PG_PARAMETERS];
};

void aster_pg_statement_fini(struct aster_pg_statement *statement);

/* Send `count` requests, at least one, in this order. `synced` false: the commit is not waited for. A waiter is
 * registered to be told when its resource is freed if the connection listens. Errors: ASTER_ERR_NOMEM (nothing was
 * sent), ASTER_ERR_UNREACHABLE. */
aster_status aster_pg_statement_send(struct aster_pg_statement *statement, struct aster_pg *pg,
                                     struct aster_request *const *requests, size_t count, bool synced,
                                     struct aster_error *error);

/* What came of it, read to the end: ASTER_OK and the decisions in the order of the requests, committed; PQclear() them.
 * ASTER_ERR_TIMEOUT and ASTER_ERR_UNREACHABLE with *known false: it may or may not have been applied, and the
 * connection is good for nothing any more. Any other error: nothing was applied; *failure says of which kind it is. */
enum aster_pg_failure {
    ASTER_PG_NO_FAILURE,
    ASTER_PG_OTHER,
    ASTER_PG_CONFLICT,
    ASTER_PG_LOCKED,
    ASTER_PG_SESSION_OVER
};
aster_status aster_pg_statement_receive(struct aster_pg *pg, int64_t until_ns, PGresult **decisions, bool *known,
                                        enum aster_pg_failure *failure, struct aster_error *error);

/* Row `row` of the result as a decision about `request`; its views borrow from both. Holders of `role` are shown
 * without it. Errors: ASTER_ERR_CORRUPT: it is no such row. */
aster_status aster_pg_decision_read(const PGresult *result, int row, const struct aster_request *request,
                                    const char *role, struct aster_decision *decision, struct aster_error *error);

/* The columns of a snapshot from `column` on, as ASTER_PG_SNAPSHOT_COLUMNS gives them for a row `d`. */
#define ASTER_PG_SNAPSHOT_COLUMNS                                                                                      \
    "d.resource, d.epoch, d.held, d.holder, (date_part('epoch', d.ttl) * 1e3)::bigint, "                               \
    "(date_part('epoch', d.remaining) * 1e6)::bigint, coalesce((date_part('epoch', d.since) * 1e3)::bigint, 0), "      \
    "d.lease_revision, d.value, d.value_revision, d.last_holder, d.last_epoch_held"
aster_status aster_pg_snapshot_read(const PGresult *result, int row, int column, const char *role,
                                    struct aster_snapshot *snapshot, struct aster_error *error);

#endif
