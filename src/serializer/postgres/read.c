/* Lists and the history: on the caller's thread, row by row, so that a long one costs no more memory than a short one.
 */
#include "base/checked.h"
#include "base/error.h"
#include "serializer/postgres/column.h"
#include "serializer/postgres/fault.h"
#include "serializer/postgres/statement.h"
#include "serializer/postgres/store.h"

#include <stdio.h>

#define GRACE_MS 500

/* What to do with a row; false stops. */
typedef bool (*row_reader)(const PGresult *result, const char *role, void *user, aster_status *status,
                           struct aster_error *error);

struct query {
    const char *text;
    int parameters;
    const Oid *types;
    const char *const *values;
    const int *lengths;
    const int *formats;
    row_reader read;
    void *user;
};

static aster_status read_rows(struct aster_pg *pg, const struct query *query, bool *broken, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    bool more = true;
    *broken = true;
    if (PQsendQueryParams(pg->conn, query->text, query->parameters, query->types, query->values, query->lengths,
                          query->formats, 1) != 1 ||
        PQsetSingleRowMode(pg->conn) != 1) {
        return aster_pg_fault_lost(PQerrorMessage(pg->conn), error);
    }
    for (;;) {
        PGresult *result = NULL;
        int64_t until_ns = aster_add_saturated(aster_clock_now_ns(aster_clock_system()),
                                               aster_ms_to_ns(pg->use.statement_timeout_ms + GRACE_MS));
        aster_status got = aster_pg_result(pg, until_ns, &result, error);
        if (got != ASTER_OK || result == NULL) {
            *broken = got != ASTER_OK;
            return got != ASTER_OK ? got : status;
        }
        if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
            status = status == ASTER_OK ? aster_pg_fault(result, error) : status;
            *broken = aster_pg_fault_is_session(result);
        } else if (more && PQntuples(result) == 1) {
            more = query->read(result, pg->role, query->user, &status, error);
        }
        PQclear(result);
        if (!more) {
            return status; /* the rest is not worth reading: the connection is given up */
        }
    }
}

static aster_status run(struct aster_pg_store *store, const struct query *query, struct aster_error *error)
{
    struct aster_pg pg;
    bool fresh = false;
    bool broken = false;
    aster_status status = aster_pg_pool_take(&store->pool, store->options.statement_timeout_ms, &pg, &fresh, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = read_rows(&pg, query, &broken, error);
    if (broken && status == ASTER_ERR_UNREACHABLE && !fresh) {
        status = aster_pg_pool_renew(&store->pool, &pg, error); /* it broke while it was idle */
        if (status == ASTER_OK) {
            status = read_rows(&pg, query, &broken, error);
        }
    }
    if (broken) {
        aster_pg_close(&pg);
    }
    aster_pg_pool_give(&store->pool, &pg);
    return status;
}

struct visited_rows {
    aster_visit_row visit;
    void *user;
};

static bool read_snapshot(const PGresult *result, const char *role, void *user, aster_status *status,
                          struct aster_error *error)
{
    const struct visited_rows *rows = user;
    struct aster_snapshot snapshot;
    *status = aster_pg_snapshot_read(result, 0, 0, role, &snapshot, error);
    return *status == ASTER_OK && rows->visit(&snapshot, rows->user);
}

aster_status aster_pg_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                           struct aster_error *error)
{
    static const Oid types[] = {25, 25, 20};
    static const int formats[] = {1, 1, 0};
    char most[24];
    snprintf(most, sizeof most, "%zu", query->limit);
    const char *const values[] = {query->prefix.size > 0 ? query->prefix.data : "",
                                  query->after.size > 0 ? query->after.data : "",
                                  query->limit > 0 && query->limit < INT64_MAX ? most : NULL};
    const int lengths[] = {(int)query->prefix.size, (int)query->after.size, 0};
    struct visited_rows rows = {visit, user};
    const struct query list = {"SELECT " ASTER_PG_SNAPSHOT_COLUMNS " FROM aster.list($1, $2, $3) AS d",
                               3,
                               types,
                               values,
                               lengths,
                               formats,
                               read_snapshot,
                               &rows};
    return run(self, &list, error);
}

static enum aster_event_kind kind_of(struct aster_bytes name)
{
    for (enum aster_event_kind at = ASTER_EVENT_GRANTED; at <= ASTER_EVENT_UNAUTHORIZED; at++) {
        if (aster_bytes_equal(name, aster_text(aster_event_name(at)))) {
            return at;
        }
    }
    return (enum aster_event_kind)0;
}

struct visited_events {
    aster_visit_event visit;
    void *user;
};

static bool read_event(const PGresult *result, const char *role, void *user, aster_status *status,
                       struct aster_error *error)
{
    const struct visited_events *events = user;
    struct aster_event event = {
        .revision = aster_pg_int8(result, 0, 0),
        .unix_ms = aster_pg_int8(result, 0, 1),
        .kind = kind_of(aster_pg_bytes(result, 0, 2)),
        .resource = aster_pg_bytes(result, 0, 4),
        .actor = aster_pg_strip_role(aster_pg_bytes(result, 0, 5), role),
        .previous = aster_pg_strip_role(aster_pg_bytes(result, 0, 6), role),
        .epoch = aster_pg_int8(result, 0, 7),
        .carried_epoch = aster_pg_int8(result, 0, 8),
    };
    if (event.kind == 0 || !aster_pg_reason_read(aster_pg_bytes(result, 0, 3), &event.reason)) {
        *status = aster_error_set(error, ASTER_ERR_VERSION,
                                  "the history has an event that this Aster does not know: use the newer Aster");
        return false;
    }
    return events->visit(&event, events->user);
}

aster_status aster_pg_history(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                              struct aster_error *error)
{
    static const Oid types[] = {25, 20, 20};
    static const int formats[] = {1, 0, 0};
    char after[24];
    char newest[24];
    snprintf(after, sizeof after, "%lld", (long long)query->after_revision);
    snprintf(newest, sizeof newest, "%zu", query->limit);
    const char *const values[] = {query->resource.size > 0 ? query->resource.data : NULL, after,
                                  query->limit > 0 && query->limit < INT64_MAX ? newest : NULL};
    const int lengths[] = {(int)query->resource.size, 0, 0};
    struct visited_events events = {visit, user};
    const struct query history = {"SELECT h.revision, (date_part('epoch', h.at) * 1e3)::bigint, h.kind, h.reason, "
                                  "h.resource, h.actor, h.previous, h.epoch, h.carried_epoch "
                                  "FROM aster.history($1, $2, $3) AS h",
                                  3,
                                  types,
                                  values,
                                  lengths,
                                  formats,
                                  read_event,
                                  &events};
    return run(self, &history, error);
}
