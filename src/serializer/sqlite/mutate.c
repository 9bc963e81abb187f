#include "base/checked.h"
#include "base/error.h"
#include "serializer/sqlite/audit.h"
#include "serializer/sqlite/guard.h"
#include "serializer/sqlite/store.h"

/* Inside a mutation the transaction is not the user's to end, and Aster's tables are not theirs to change. */
static int authorize_statement(void *user, int action, const char *first, const char *second, const char *database,
                               const char *trigger)
{
    (void)second;
    (void)database;
    (void)trigger;
    const struct aster_store *store = user;
    if (!store->in_mutation) {
        return SQLITE_OK;
    }
    switch (action) {
    case SQLITE_TRANSACTION:
        return SQLITE_DENY;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
        return sqlite3_stricmp(first, "aster_lease") == 0 || sqlite3_stricmp(first, "aster_meta") == 0 ||
                       sqlite3_stricmp(first, "aster_audit") == 0
                   ? SQLITE_DENY
                   : SQLITE_OK;
    default:
        return SQLITE_OK;
    }
}

/* A statement can still end the transaction (INSERT OR ROLLBACK). What the mutation writes after that would commit on
 * its own, outside of the check: this turns such a commit into a rollback. */
static int refuse_commit(void *user)
{
    const struct aster_store *store = user;
    return store->in_mutation ? 1 : 0;
}

static aster_status open_connection(struct aster_store *store, struct aster_error *error)
{
    struct aster_connection *connection = &store->mutate_connection;
    if (connection->db != NULL) {
        return ASTER_OK;
    }
    aster_status status = aster_store_connect(store, connection, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = aster_guard_install(connection->db, &store->guard);
    if (code != SQLITE_OK) {
        status = aster_connection_fault(connection, code, error);
        aster_connection_fini(connection);
        return status;
    }
    sqlite3_set_authorizer(connection->db, authorize_statement, store);
    sqlite3_commit_hook(connection->db, refuse_commit, store);
    return ASTER_OK;
}

/* A statement that the mutation has left half-way would keep the transaction open, or its commit from working. */
static void reset_statements(sqlite3 *db)
{
    for (sqlite3_stmt *statement = sqlite3_next_stmt(db, NULL); statement != NULL;
         statement = sqlite3_next_stmt(db, statement)) {
        if (sqlite3_stmt_busy(statement)) {
            sqlite3_reset(statement);
        }
    }
}

static aster_status run_mutation(struct aster_store *store, const struct aster_fence *fence, aster_mutation mutation,
                                 void *user, struct aster_error *error)
{
    struct aster_connection *connection = &store->mutate_connection;
    if (aster_guard_declare(store->guard, fence) != SQLITE_OK) {
        aster_connection_rollback(connection);
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the fence: nothing was applied");
    }
    store->in_mutation = true;
    aster_status status = mutation(connection->db, user);
    reset_statements(connection->db);
    store->in_mutation = false;
    aster_guard_withdraw_all(store->guard); /* also what the mutation declared by itself: the next one is another's */
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return aster_error_set(error, status, "the mutation returned %s: what it wrote was rolled back",
                               aster_status_name(status));
    }
    if (sqlite3_get_autocommit(connection->db) != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the mutation ended the transaction itself (a ROLLBACK conflict clause?): nothing was "
                               "applied; leave the transaction to the serializer");
    }
    return aster_connection_commit(connection, error);
}

/* The rejection stands, whether or not it can be written down. */
static void record_rejection(struct aster_store *store, const struct aster_fence *fence, struct aster_bytes writer,
                             const struct aster_verdict *verdict)
{
    const struct aster_event event = {
        .unix_ms = aster_clock_unix_ms(store->clock),
        .kind = ASTER_EVENT_FENCE_REJECTED,
        .reason = verdict->reason,
        .resource = fence->resource,
        .actor = writer,
        .epoch = verdict->current_epoch,
        .carried_epoch = verdict->carried_epoch,
    };
    struct aster_connection *connection = &store->mutate_connection;
    if (aster_audit_append(connection, &event, store->options.history_max, NULL) == ASTER_OK) {
        aster_connection_commit(connection, NULL);
    } else {
        aster_connection_rollback(connection);
    }
}

static aster_status mutate_in_turn(struct aster_store *store, const struct aster_fence *fence,
                                   struct aster_bytes writer, aster_mutation mutation, void *user,
                                   struct aster_verdict *verdict, struct aster_error *error)
{
    aster_status status = open_connection(store, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_connection *connection = &store->mutate_connection;
    aster_connection_wait_for(connection, store->options.busy_timeout_ms);
    status = aster_connection_begin_write(connection, true, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_stored_row stored;
    const struct aster_row_reader reader = {connection, &store->mutate_arena, store->clock, &store->boot};
    aster_arena_reset(&store->mutate_arena);
    status = aster_row_load(&reader, fence->resource, &stored, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(connection);
        return status;
    }
    struct aster_verdict made = aster_fence_verdict(&stored.row, fence->resource, fence, writer);
    if (made.reason != ASTER_REASON_NONE) {
        record_rejection(store, fence, writer, &made);
    } else {
        status = run_mutation(store, fence, mutation, user, error);
    }
    if (status == ASTER_OK && verdict != NULL) {
        *verdict = made;
    }
    return status;
}

aster_status aster_store_mutate(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                struct aster_error *error)
{
    struct aster_store *store = self;
    aster_status status = aster_resource_check(fence->resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK) {
        status = aster_identity_check(writer, "writer", error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    if (!aster_turns_take(&store->turns, ASTER_WRITER_MUTATION, aster_ms_to_ns(store->options.busy_timeout_ms))) {
        return aster_error_set(error, ASTER_ERR_BUSY,
                               "other writes of this process have taken more than %lld ms: nothing was applied; retry",
                               (long long)store->options.busy_timeout_ms);
    }
    status = mutate_in_turn(store, fence, writer, mutation, user, verdict, error);
    aster_turns_give(&store->turns, ASTER_WRITER_MUTATION);
    return status;
}
