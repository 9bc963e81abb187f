#include <stdio.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/postgres/column.h"
#include "serializer/postgres/fault.h"
#include "serializer/postgres/store.h"

#define GRACE_MS 500 /* the server ends the statement first */

/* A fenced write under way. */
struct write {
    struct aster_pg_store *store;
    const struct aster_fence *fence;
    struct aster_bytes writer;
    struct aster_pg pg;
    struct aster_verdict verdict;
};

static int64_t until_ns(const struct write *write)
{
    return aster_add_saturated(aster_clock_now_ns(aster_clock_system()),
                               aster_ms_to_ns(write->pg.use.statement_timeout_ms + GRACE_MS));
}

static bool send_begin(struct write *write)
{
    char epoch[24];
    char timeout[64];
    const struct aster_fence *fence = write->fence;
    snprintf(epoch, sizeof epoch, "%lld", (long long)fence->epoch);
    snprintf(timeout, sizeof timeout, "SET LOCAL statement_timeout = %lld",
             (long long)write->pg.use.statement_timeout_ms);
    const char *const values[] = {fence->resource.data, epoch, write->writer.data, fence->holder.data};
    const int lengths[] = {(int)fence->resource.size, 0, (int)write->writer.size, (int)fence->holder.size};
    const int formats[] = {1, 0, 1, 1};
    static const Oid types[] = {25, 20, 25, 25};
    PGconn *conn = write->pg.conn;
    bool sent =
        PQenterPipelineMode(conn) == 1 &&
        PQsendQueryParams(conn, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", 0, NULL, NULL, NULL, NULL, 0) == 1;
    if (write->pg.pooled) {
        sent = sent && PQsendQueryParams(conn, timeout, 0, NULL, NULL, NULL, NULL, 0) == 1;
    }
    return sent &&
           PQsendQueryParams(conn, "SELECT reason, current_epoch FROM aster.check_fence($1, $2, $3, $4)", 4, types,
                             values, lengths, formats, 1) == 1 &&
           PQpipelineSync(conn) == 1;
}

static aster_status read_verdict(struct write *write, const PGresult *result, struct aster_error *error)
{
    write->verdict.carried_epoch = write->fence->epoch;
    write->verdict.current_epoch = aster_pg_int8(result, 0, 1);
    if (PQntuples(result) != 1 || !aster_pg_reason_read(aster_pg_bytes(result, 0, 0), &write->verdict.reason)) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "PostgreSQL answered with a verdict that Aster does not know");
    }
    return ASTER_OK;
}

/* Read the results up to the synchronisation point. *lost: the connection is good for nothing, and nothing was applied,
 * as nothing was committed. */
static aster_status receive_verdict(struct write *write, bool *lost, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    bool judged = false;
    int64_t limit_ns = until_ns(write);
    for (bool synced = false; !synced;) {
        PGresult *result = NULL;
        aster_status got = aster_pg_result(&write->pg, limit_ns, &result, error);
        if (got != ASTER_OK) {
            *lost = true;
            return got;
        }
        ExecStatusType kind = PQresultStatus(result);
        synced = result != NULL && kind == PGRES_PIPELINE_SYNC;
        if (kind == PGRES_TUPLES_OK) {
            status = read_verdict(write, result, error);
            judged = true;
        } else if (result != NULL && kind == PGRES_FATAL_ERROR && status == ASTER_OK) {
            status = aster_pg_fault(result, error);
            *lost = aster_pg_fault_is_session(result);
        }
        PQclear(result);
    }
    PQexitPipelineMode(write->pg.conn);
    return status != ASTER_OK || judged ? status : aster_error_set(error, ASTER_ERR_CORRUPT, "no verdict");
}

/* Begin a transaction and judge the fence in one round trip. A connection that broke while it was idle is replaced. */
static aster_status begin(struct write *write, bool fresh, struct aster_error *error)
{
    for (;;) {
        bool lost = true;
        aster_status status = ASTER_ERR_UNREACHABLE;
        if (send_begin(write)) {
            status = receive_verdict(write, &lost, error);
        } else {
            aster_pg_fault_lost(PQerrorMessage(write->pg.conn), error);
        }
        if (!lost || fresh) {
            return status;
        }
        status = aster_pg_pool_renew(&write->store->pool, &write->pg, error);
        if (status != ASTER_OK) {
            return status;
        }
        fresh = true;
    }
}

static aster_status roll_back(struct write *write, aster_status status, const struct aster_error *cause,
                              struct aster_error *error)
{
    if (aster_pg_run(&write->pg, "ROLLBACK", until_ns(write), NULL, NULL) != ASTER_OK) {
        aster_pg_close(&write->pg); /* the server rolls back what it loses */
    }
    if (cause != NULL && error != NULL) {
        *error = *cause;
    }
    return status;
}

/* A lost connection leaves open whether the commit happened. */
static aster_status commit(struct write *write, struct aster_error *error)
{
    char tag[32] = "";
    aster_status status = aster_pg_run(&write->pg, "COMMIT", until_ns(write), tag, error);
    if (status == ASTER_ERR_UNREACHABLE || (status == ASTER_ERR_TIMEOUT && tag[0] == '\0')) {
        aster_pg_close(&write->pg);
        return aster_error_set(error, ASTER_ERR_INDETERMINATE,
                               "PostgreSQL was lost during COMMIT: the write is in, or it is not; look before you "
                               "repeat it");
    }
    if (status == ASTER_OK && strcmp(tag, "COMMIT") != 0) {
        status = aster_error_set(error, ASTER_ERR_IO,
                                 "a statement of the mutation failed and the mutation did not say so: everything was "
                                 "rolled back");
    }
    return status;
}

static aster_status run_mutation(struct write *write, aster_mutation mutation, void *user, struct aster_error *error)
{
    struct aster_error cause = ASTER_ERROR_INIT;
    aster_status status = mutation(write->pg.conn, user);
    if (PQpipelineStatus(write->pg.conn) != PQ_PIPELINE_OFF || !aster_pg_drain(&write->pg, until_ns(write))) {
        aster_pg_close(&write->pg);
        return aster_error_set(error, status != ASTER_OK ? status : ASTER_ERR_UNREACHABLE,
                               "PostgreSQL was lost during the write: it was rolled back");
    }
    if (status != ASTER_OK) {
        aster_error_set(&cause, status, "the mutation returned %s: what it wrote was rolled back",
                        aster_status_name(status));
        return roll_back(write, status, &cause, error);
    }
    if (PQtransactionStatus(write->pg.conn) == PQTRANS_IDLE) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "the mutation ended the transaction itself: leave COMMIT and ROLLBACK to the serializer");
    }
    return commit(write, error);
}

static aster_status check_names(const struct aster_fence *fence, struct aster_bytes writer, struct aster_error *error)
{
    aster_status status = aster_resource_check(fence->resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    return status == ASTER_OK ? aster_identity_check(writer, "writer", error) : status;
}

aster_status aster_pg_mutate(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                             aster_mutation mutation, void *user, struct aster_verdict *verdict,
                             struct aster_error *error)
{
    struct aster_pg_store *store = self;
    struct write write = {.store = store, .fence = fence, .writer = writer};
    bool fresh = false;
    aster_status status = check_names(fence, writer, error);
    if (status == ASTER_OK) {
        status = aster_pg_pool_take(&store->pool, store->options.statement_timeout_ms, &write.pg, &fresh, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    status = begin(&write, fresh, error);
    if (status != ASTER_OK) {
        if (write.pg.conn != NULL) {
            roll_back(&write, status, NULL, NULL);
        }
    } else if (write.verdict.reason != ASTER_REASON_NONE) {
        status = commit(&write, NULL) == ASTER_OK ? ASTER_OK : roll_back(&write, ASTER_OK, NULL, NULL);
    } else {
        status = run_mutation(&write, mutation, user, error);
    }
    aster_pg_pool_give(&store->pool, &write.pg);
    if (status == ASTER_OK && verdict != NULL) {
        *verdict = write.verdict;
    }
    return status;
}
