#include "serializer/postgres/statement.h"

#include <inttypes.h>
#include <stdio.h>

#include "aster/limits.h"
#include "base/checked.h"
#include "base/error.h"
#include "serializer/postgres/column.h"
#include "serializer/postgres/fault.h"

#define PREPARED "aster_apply"
#define PREPARED_UNSYNCED "aster_renew"

/* The parameters, one element per request. */
enum parameter {
    KIND,
    RESOURCE,
    CALLER,
    REQUEST_ID,
    EPOCH,
    TTL_MS,
    TAKE_OVER,
    WAITING_MS,
    VALUE,
    VALUE_REVISION,
    HOLDER
};

static const enum aster_pg_type parameter_types[ASTER_PG_PARAMETERS] = {
    ASTER_PG_INT8, ASTER_PG_TEXT, ASTER_PG_TEXT,  ASTER_PG_UUID, ASTER_PG_INT8, ASTER_PG_INT8,
    ASTER_PG_BOOL, ASTER_PG_INT8, ASTER_PG_BYTEA, ASTER_PG_INT8, ASTER_PG_TEXT,
};

/* CASE runs one function per row, in the order of the arrays; OFFSET 0 keeps the planner from running it once per
 * column. %s: what else the statement does. */
static const char statement_format[] =
    "SELECT d.granted, d.reason, d.takeover, d.replayed, d.carried_epoch, d.epoch, " ASTER_PG_SNAPSHOT_COLUMNS " "
    "FROM %s unnest($1::int8[], $2::text[], $3::text[], $4::uuid[], $5::int8[], $6::int8[], $7::bool[], $8::int8[], "
    "$9::bytea[], $10::int8[], $11::text[]) "
    "AS o(kind, resource, caller, id, epoch, ttl, own, waiting, value, value_revision, holder), "
    "LATERAL (SELECT (a.answer).* FROM (SELECT CASE o.kind "
    "WHEN 1 THEN aster.acquire(o.resource, o.ttl * interval '1 ms', o.caller, o.own, o.id, o.waiting * interval '1 "
    "ms') "
    "WHEN 2 THEN aster.renew(o.resource, o.epoch, o.caller, o.id) "
    "WHEN 3 THEN aster.release(o.resource, o.epoch, o.caller, o.id, o.value, o.value_revision) "
    "WHEN 4 THEN aster.revoke(o.resource, o.epoch, o.caller, o.id) "
    "WHEN 6 THEN aster.put(o.resource, o.epoch, o.value_revision, o.value, o.caller, o.id, o.holder) "
    "WHEN 7 THEN aster.forget(o.resource) "
    "WHEN 8 THEN (SELECT ROW(true, 'NONE', i.epoch, false, false, 0, i.resource, i.held, i.holder, i.ttl, i.remaining, "
    "i.since, i.lease_revision, i.value, i.value_revision, i.last_holder, i.last_epoch_held)::aster.decision "
    "FROM aster.inspect(o.resource) AS i) END AS answer OFFSET 0) AS a OFFSET 0) AS d";

static const char unsynced[] = "(SELECT set_config('synchronous_commit', 'off', true)) AS s,";

static const Oid array_types[] = {1016, 1009, 1009, 2951, 1016, 1016, 1000, 1016, 1001, 1016, 1009};

void aster_pg_statement_fini(struct aster_pg_statement *statement)
{
    for (size_t i = 0; i < ASTER_PG_PARAMETERS; i++) {
        aster_pg_array_fini(&statement->arrays[i]);
    }
}

static void add_optional(struct aster_pg_array *array, bool present, int64_t value)
{
    if (present) {
        aster_pg_array_add_int8(array, value);
    } else {
        aster_pg_array_add_null(array);
    }
}

static void add_request(struct aster_pg_array *arrays, const struct aster_request *request, bool listens,
                        int64_t now_ns)
{
    static const unsigned char no_id[ASTER_REQUEST_ID_SIZE];
    const struct aster_operation *operation = &request->operation;
    bool has_id = memcmp(operation->request_id, no_id, sizeof no_id) != 0;
    bool is_put = operation->kind == ASTER_OP_PUT;
    bool has_value = is_put || (operation->flags & ASTER_OP_WITH_VALUE) != 0;
    bool has_epoch = operation->kind != ASTER_OP_REVOKE || (operation->flags & ASTER_OP_EXPECT_EPOCH) != 0;
    int64_t waiting_ns = request->wait_until_ns - now_ns;
    aster_pg_array_add_int8(&arrays[KIND], operation->kind);
    aster_pg_array_add_bytes(&arrays[RESOURCE], operation->resource);
    aster_pg_array_add_bytes(&arrays[CALLER], operation->caller);
    if (has_id) {
        const struct aster_bytes id = {operation->request_id, sizeof operation->request_id};
        aster_pg_array_add_bytes(&arrays[REQUEST_ID], id);
    } else {
        aster_pg_array_add_null(&arrays[REQUEST_ID]);
    }
    add_optional(&arrays[EPOCH], has_epoch, operation->epoch);
    aster_pg_array_add_int8(&arrays[TTL_MS], operation->ttl_ms);
    aster_pg_array_add_bool(&arrays[TAKE_OVER], (operation->flags & ASTER_OP_TAKE_OVER_OWN) != 0);
    add_optional(&arrays[WAITING_MS], listens && waiting_ns > 0, waiting_ns / ASTER_NS_PER_MS);
    if (has_value) {
        aster_pg_array_add_bytes(&arrays[VALUE], operation->value);
    } else {
        aster_pg_array_add_null(&arrays[VALUE]);
    }
    aster_pg_array_add_int8(&arrays[VALUE_REVISION], operation->value_revision);
    if (is_put) {
        aster_pg_array_add_bytes(&arrays[HOLDER], operation->holder);
    } else {
        aster_pg_array_add_null(&arrays[HOLDER]);
    }
}

static bool encode(struct aster_pg_statement *statement, struct aster_request *const *requests, size_t count,
                   bool listens)
{
    bool failed = false;
    int64_t now_ns = aster_clock_now_ns(aster_clock_system());
    for (size_t i = 0; i < ASTER_PG_PARAMETERS; i++) {
        aster_pg_array_begin(&statement->arrays[i], parameter_types[i]);
    }
    for (size_t i = 0; i < count; i++) {
        add_request(statement->arrays, requests[i], listens, now_ns);
    }
    for (size_t i = 0; i < ASTER_PG_PARAMETERS; i++) {
        aster_pg_array_end(&statement->arrays[i]);
        failed = failed || statement->arrays[i].failed;
    }
    return !failed;
}

static void write_text(char text[2048], bool synced)
{
    snprintf(text, 2048, statement_format, synced ? "" : unsynced);
}

/* Behind a pooler every transaction brings its own settings, and prepares nothing. */
static bool send_pooled(struct aster_pg *pg, const char *text, const char *const *values, const int *lengths,
                        const int *formats)
{
    char settings[2][64];
    snprintf(settings[0], sizeof settings[0], "SET LOCAL statement_timeout = %" PRId64, pg->use.statement_timeout_ms);
    snprintf(settings[1], sizeof settings[1], "SET LOCAL lock_timeout = %" PRId64, pg->use.lock_timeout_ms);
    const char *const before[] = {"BEGIN ISOLATION LEVEL READ COMMITTED", settings[0], settings[1]};
    bool sent = PQenterPipelineMode(pg->conn) == 1;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        sent = sent && PQsendQueryParams(pg->conn, before[i], 0, NULL, NULL, NULL, NULL, 0) == 1;
    }
    sent =
        sent && PQsendQueryParams(pg->conn, text, ASTER_PG_PARAMETERS, array_types, values, lengths, formats, 1) == 1;
    sent = sent && PQsendQueryParams(pg->conn, "COMMIT", 0, NULL, NULL, NULL, NULL, 0) == 1;
    return sent && PQpipelineSync(pg->conn) == 1;
}

/* The first batch of a connection that lasts prepares the statement in the same round trip. */
static bool send_direct(struct aster_pg *pg, bool synced, const char *const *values, const int *lengths,
                        const int *formats)
{
    const char *name = synced ? PREPARED : PREPARED_UNSYNCED;
    bool sent = PQenterPipelineMode(pg->conn) == 1;
    if (!pg->prepared) {
        char text[2048];
        write_text(text, true);
        sent = sent && PQsendPrepare(pg->conn, PREPARED, text, ASTER_PG_PARAMETERS, array_types) == 1;
        write_text(text, false);
        sent = sent && PQsendPrepare(pg->conn, PREPARED_UNSYNCED, text, ASTER_PG_PARAMETERS, array_types) == 1;
    }
    sent = sent && PQsendQueryPrepared(pg->conn, name, ASTER_PG_PARAMETERS, values, lengths, formats, 1) == 1;
    return sent && PQpipelineSync(pg->conn) == 1;
}

aster_status aster_pg_statement_send(struct aster_pg_statement *statement, struct aster_pg *pg,
                                     struct aster_request *const *requests, size_t count, bool synced,
                                     struct aster_error *error)
{
    const char *values[ASTER_PG_PARAMETERS];
    int lengths[ASTER_PG_PARAMETERS];
    int formats[ASTER_PG_PARAMETERS];
    if (!encode(statement, requests, count, pg->use.listens && !pg->pooled)) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a statement: nothing was applied");
    }
    for (size_t i = 0; i < ASTER_PG_PARAMETERS; i++) {
        values[i] = statement->arrays[i].bytes;
        lengths[i] = (int)statement->arrays[i].used;
        formats[i] = 1;
    }
    bool sent;
    if (pg->pooled) {
        char text[2048];
        write_text(text, synced);
        sent = send_pooled(pg, text, values, lengths, formats);
    } else {
        sent = send_direct(pg, synced, values, lengths, formats);
    }
    return sent
               ? ASTER_OK
               : aster_error_set(error, ASTER_ERR_UNREACHABLE, "PostgreSQL: the connection was lost: nothing was sent");
}

static enum aster_pg_failure failure_of(const PGresult *result)
{
    if (aster_pg_fault_is_conflict(result)) {
        return ASTER_PG_CONFLICT;
    }
    if (aster_pg_fault_is_lock(result)) {
        return ASTER_PG_LOCKED;
    }
    return aster_pg_fault_is_session(result) ? ASTER_PG_SESSION_OVER : ASTER_PG_OTHER;
}

/* The commit is the last thing before the synchronisation point, so that only what was read up to it counts. */
aster_status aster_pg_statement_receive(struct aster_pg *pg, int64_t until_ns, PGresult **decisions, bool *known,
                                        enum aster_pg_failure *failure, struct aster_error *error)
{
    PGresult *rows = NULL;
    aster_status status = ASTER_OK;
    int commands = 0; /* without a pooler, only preparing is one, and it outlives a batch that fails after it */
    *failure = ASTER_PG_NO_FAILURE;
    *known = false;
    for (bool synced = false; !synced;) {
        PGresult *result = NULL;
        aster_status got = aster_pg_result(pg, until_ns, &result, error);
        if (got != ASTER_OK) {
            PQclear(rows);
            return got;
        }
        ExecStatusType kind = PQresultStatus(result); /* of NULL too, which parts the results of two statements */
        synced = kind == PGRES_PIPELINE_SYNC;
        if (kind == PGRES_TUPLES_OK && rows == NULL) {
            rows = result;
            continue;
        }
        if (result != NULL && kind == PGRES_FATAL_ERROR && status == ASTER_OK) {
            status = aster_pg_fault(result, error);
            *failure = failure_of(result);
        }
        commands += kind == PGRES_COMMAND_OK;
        PQclear(result);
    }
    *known = PQexitPipelineMode(pg->conn) == 1;
    pg->prepared = pg->prepared || (commands == 2 && !pg->pooled);
    if (status == ASTER_OK && rows == NULL) {
        status = aster_error_set(error, ASTER_ERR_CORRUPT, "PostgreSQL answered without rows");
        *failure = ASTER_PG_OTHER;
    }
    if (status != ASTER_OK) {
        PQclear(rows);
        return status;
    }
    *decisions = rows;
    return ASTER_OK;
}

bool aster_pg_reason_read(struct aster_bytes name, enum aster_reason *reason)
{
    for (enum aster_reason at = ASTER_REASON_NONE; at <= ASTER_REASON_NO_FENCE; at++) {
        if (aster_bytes_equal(name, aster_text(aster_reason_name(at)))) {
            *reason = at;
            return true;
        }
    }
    return false;
}

struct aster_bytes aster_pg_strip_role(struct aster_bytes holder, const char *role)
{
    size_t size = strlen(role);
    const char *bytes = holder.data;
    if (holder.size > size + 1 && memcmp(bytes, role, size) == 0 && bytes[size] == '/') {
        return (struct aster_bytes){bytes + size + 1, holder.size - size - 1};
    }
    return holder;
}

aster_status aster_pg_snapshot_read(const PGresult *result, int row, int column, const char *role,
                                    struct aster_snapshot *snapshot, struct aster_error *error)
{
    struct aster_snapshot made = {
        .resource = aster_pg_bytes(result, row, column),
        .epoch = aster_pg_int8(result, row, column + 1),
        .held = aster_pg_bool(result, row, column + 2),
        .holder = aster_pg_strip_role(aster_pg_bytes(result, row, column + 3), role),
        .ttl_ms = aster_pg_int8(result, row, column + 4),
        .remaining_ns = aster_pg_int8(result, row, column + 5) * 1000,
        .since_unix_ms = aster_pg_int8(result, row, column + 6),
        .lease_revision = aster_pg_int8(result, row, column + 7),
        .value = aster_pg_bytes(result, row, column + 8),
        .value_revision = aster_pg_int8(result, row, column + 9),
        .last_holder = aster_pg_strip_role(aster_pg_bytes(result, row, column + 10), role),
        .last_epoch_held = aster_pg_int8(result, row, column + 11),
    };
    if (made.resource.size == 0 || made.epoch < 0 || made.remaining_ns < 0) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "PostgreSQL answered with a row that is none of Aster's");
    }
    *snapshot = made;
    return ASTER_OK;
}

aster_status aster_pg_decision_read(const PGresult *result, int row, const struct aster_request *request,
                                    const char *role, struct aster_decision *decision, struct aster_error *error)
{
    struct aster_decision made = {.struct_size = sizeof made, .kind = request->operation.kind};
    if (!aster_pg_reason_read(aster_pg_bytes(result, row, 1), &made.reason)) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "PostgreSQL answered with a reason that Aster does not know");
    }
    made.outcome = aster_pg_bool(result, row, 0) ? ASTER_GRANTED : ASTER_DENIED;
    made.takeover = aster_pg_bool(result, row, 2);
    made.replayed = aster_pg_bool(result, row, 3);
    made.carried_epoch = aster_pg_int8(result, row, 4);
    made.epoch = aster_pg_int8(result, row, 5);
    aster_status status = aster_pg_snapshot_read(result, row, 6, role, &made.snapshot, error);
    if (status == ASTER_OK) {
        *decision = made;
    }
    return status;
}
