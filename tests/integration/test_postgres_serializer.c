/* What the PostgreSQL serializer does beyond the conformance suite: fenced writes on the user's connection, broken
 * connections, answers that are lost, locks, waiters, and a pooler in between. */
#include "support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "aster/postgres.h"
#include "aster/sys/serializer.h"
#include "support/postgres_server.h"
#include "support/requests.h"

#define MS INT64_C(1000000)

static struct postgres_server server;

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

static struct aster_serializer *open_at(const char *conninfo)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_postgres_open(conninfo, NULL, &serializer, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    return serializer;
}

static struct aster_serializer *open_store(void)
{
    postgres_server_do(&server, "reset", NULL);
    return open_at(server.conninfo);
}

static void set_id(struct aster_operation *operation, unsigned char first)
{
    memset(operation->request_id, first, sizeof operation->request_id);
}

/* Decide, or fail the test. */
static struct aster_decision call(struct aster_serializer *serializer, struct aster_operation operation)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_serializer_call(serializer, &operation, 0, &reply, &error) != ASTER_OK) {
        fail_msg("%s: %s", aster_operation_name(operation.kind), error.message);
    }
    struct aster_decision decision = reply.decision; /* its views go with the reply */
    aster_reply_fini(&reply);
    return decision;
}

static int64_t acquire(struct aster_serializer *serializer, const char *resource, const char *holder)
{
    struct aster_decision decision = call(serializer, op_acquire(resource, holder, REQUEST_TTL_MS));
    assert_int_equal(decision.outcome, ASTER_GRANTED);
    return decision.epoch;
}

/* A request under way on another thread's time. */
struct pending {
    struct aster_request request;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool answered;
    aster_status status;
    struct aster_decision decision;
    int64_t answered_ns;
};

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct pending *pending = request->user;
    (void)error;
    pthread_mutex_lock(&pending->mutex);
    pending->status = status;
    if (decision != NULL) {
        pending->decision = *decision;
    }
    pending->answered = true;
    pending->answered_ns = now_ns();
    pthread_cond_signal(&pending->done);
    pthread_mutex_unlock(&pending->mutex);
}

static void submit(struct pending *pending, struct aster_serializer *serializer, struct aster_operation operation,
                   int64_t wait_ms)
{
    *pending = (struct pending){.request = ASTER_REQUEST_INIT};
    pthread_mutex_init(&pending->mutex, NULL);
    pthread_cond_init(&pending->done, NULL);
    pending->request.operation = operation;
    pending->request.complete = complete;
    pending->request.user = pending;
    pending->request.wait_until_ns = wait_ms > 0 ? now_ns() + wait_ms * MS : 0;
    aster_serializer_submit(serializer, &pending->request);
}

static bool is_answered(struct pending *pending)
{
    pthread_mutex_lock(&pending->mutex);
    bool answered = pending->answered;
    pthread_mutex_unlock(&pending->mutex);
    return answered;
}

static void wait_for(struct pending *pending)
{
    pthread_mutex_lock(&pending->mutex);
    while (!pending->answered) {
        pthread_cond_wait(&pending->done, &pending->mutex);
    }
    pthread_mutex_unlock(&pending->mutex);
}

static aster_status execute(void *tx, void *user)
{
    PGresult *result = PQexec(tx, user);
    bool good = PQresultStatus(result) != PGRES_FATAL_ERROR;
    PQclear(result);
    return good ? ASTER_OK : ASTER_ERR_IO;
}

static aster_status mutate(struct aster_serializer *serializer, int64_t epoch, const char *writer,
                           aster_mutation mutation, const char *sql, enum aster_reason *reason)
{
    const struct aster_fence fence = {aster_text("note"), epoch, aster_text(writer)};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status =
        aster_mutate_fenced(serializer, &fence, fence.holder, mutation, (void *)(uintptr_t)sql, &verdict, &error);
    *reason = verdict.reason;
    return status;
}

static void expect_notes(const char *expected)
{
    char answer[256];
    postgres_server_do(&server, "sql SELECT count(*) FROM note", answer);
    assert_string_equal(answer, expected);
}

static void clear_notes(struct aster_serializer *serializer, int64_t epoch)
{
    enum aster_reason reason;
    assert_int_equal(mutate(serializer, epoch, "a", execute, "DELETE FROM note", &reason), ASTER_OK);
    assert_int_equal(reason, ASTER_REASON_NONE);
}

static aster_status swallow_error(void *tx, void *user)
{
    PQclear(PQexec(tx, user));
    return ASTER_OK;
}

static void the_write_runs_on_the_users_connection_in_the_transaction_of_the_check(void **state)
{
    (void)state;
    enum aster_reason reason;
    struct aster_serializer *serializer = open_store();
    int64_t epoch = acquire(serializer, "note", "a");
    clear_notes(serializer, epoch);
    const char *insert = "INSERT INTO note VALUES (1, 'x')"; /* a protected table: the guard finds the fence declared */
    assert_int_equal(mutate(serializer, epoch, "a", execute, insert, &reason), ASTER_OK);
    assert_int_equal(reason, ASTER_REASON_NONE);
    expect_notes("1");
    assert_int_equal(mutate(serializer, epoch, "b", execute, insert, &reason), ASTER_OK);
    assert_int_equal(reason, ASTER_REASON_NOT_HOLDER);
    assert_int_equal(mutate(serializer, epoch, "a", execute, insert, &reason), ASTER_ERR_IO); /* a duplicate key */
    assert_int_equal(mutate(serializer, epoch, "a", swallow_error, insert, &reason), ASTER_ERR_IO);
    assert_int_equal(mutate(serializer, epoch, "a", execute, "COMMIT", &reason), ASTER_ERR_INVALID);
    assert_int_equal(mutate(serializer, epoch, "a", execute, "INSERT INTO note VALUES (2, 'y')", &reason), ASTER_OK);
    expect_notes("2");
    call(serializer, op_revoke("note", "operator"));
    assert_int_equal(mutate(serializer, epoch, "a", execute, "DELETE FROM note", &reason), ASTER_OK);
    assert_int_equal(reason, ASTER_REASON_STALE_EPOCH);
    expect_notes("2");
    aster_serializer_destroy(serializer);
}

static void broken_connections_are_replaced_without_the_caller_noticing(void **state)
{
    (void)state;
    enum aster_reason reason;
    struct aster_serializer *serializer = open_store();
    int64_t epoch = acquire(serializer, "note", "a");
    clear_notes(serializer, epoch);
    for (int i = 0; i < 3; i++) {
        postgres_server_do(&server,
                           "sql SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'tester'",
                           NULL);
        assert_int_equal(call(serializer, op_renew("note", "a", epoch)).outcome, ASTER_GRANTED);
        assert_int_equal(call(serializer, op_inspect("note")).epoch, epoch);
        assert_int_equal(mutate(serializer, epoch, "a", execute, "UPDATE note SET text = 'z'", &reason), ASTER_OK);
        assert_int_equal(reason, ASTER_REASON_NONE);
    }
    aster_serializer_destroy(serializer);
}

static void a_server_that_is_gone_is_told_at_once_and_used_again_when_it_is_back(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t epoch = acquire(serializer, "r", "a");
    postgres_server_do(&server, "stop", NULL);
    int64_t start_ns = now_ns();
    struct aster_operation renew = op_renew("r", "a", epoch);
    aster_status status = aster_serializer_call(serializer, &renew, 0, &reply, &error);
    assert_true(status == ASTER_ERR_UNREACHABLE || status == ASTER_ERR_INDETERMINATE);
    assert_true(now_ns() - start_ns < 5000 * MS);
    postgres_server_do(&server, "start", NULL);
    do {
        status = aster_serializer_call(serializer, &renew, 0, &reply, &error);
    } while (status == ASTER_ERR_UNREACHABLE && now_ns() - start_ns < 20000 * MS);
    assert_int_equal(status, ASTER_OK);
    assert_int_equal(reply.decision.outcome, ASTER_GRANTED);
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
}

/* Kill -9 of the whole server while requests are under way: an answer that was lost is asked for again under its id,
 * and nothing is applied twice or lost. */
static void an_answer_that_was_lost_is_found_again_under_its_id(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    for (int round = 0; round < 5; round++) {
        char name[32];
        struct pending pending;
        snprintf(name, sizeof name, "lost %d", round);
        struct aster_operation operation = op_acquire(name, "a", REQUEST_TTL_MS);
        set_id(&operation, (unsigned char)(round + 1));
        submit(&pending, serializer, operation, 0);
        postgres_server_do(&server, "kill", NULL);
        wait_for(&pending);
        aster_status status = pending.status;
        assert_true(status == ASTER_OK || status == ASTER_ERR_INDETERMINATE || status == ASTER_ERR_UNREACHABLE);
        int64_t limit_ns = now_ns() + 20000 * MS;
        while (status != ASTER_OK && now_ns() < limit_ns) {
            struct aster_reply reply = ASTER_REPLY_INIT;
            status = aster_serializer_call(serializer, &operation, 0, &reply, NULL);
            aster_reply_fini(&reply);
        }
        assert_int_equal(status, ASTER_OK);
        assert_int_equal(call(serializer, operation).epoch, 1);
        assert_true(call(serializer, operation).replayed);
        assert_int_equal(call(serializer, op_inspect(name)).epoch, 1);
    }
    aster_serializer_destroy(serializer);
}

/* Another session that keeps a row locked by a guard. */
static PGconn *hold_guard(const char *resource, int64_t epoch)
{
    char sql[128];
    PGconn *conn = PQconnectdb(server.conninfo);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    snprintf(sql, sizeof sql, "BEGIN; SELECT aster.fence('%s', %lld, 'a')", resource, (long long)epoch);
    PGresult *result = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    return conn;
}

static void a_row_that_is_locked_delays_nobody_else(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    int64_t epoch = acquire(serializer, "locked", "a");
    int64_t other = acquire(serializer, "other", "a");
    PGconn *guard = hold_guard("locked", epoch);
    struct pending revoking;
    struct aster_operation revoke = op_revoke("locked", "operator");
    set_id(&revoke, 9);
    submit(&revoking, serializer, revoke, 0);
    int64_t start_ns = now_ns();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(serializer, op_renew("other", "a", other)).outcome, ASTER_GRANTED);
        assert_int_equal(call(serializer, op_renew("locked", "a", epoch)).outcome,
                         ASTER_GRANTED); /* passes the guard */
        assert_int_equal(call(serializer, op_inspect("other")).epoch, other);
    }
    assert_true(now_ns() - start_ns < 5000 * MS);
    wait_for(&revoking);
    assert_int_equal(revoking.status, ASTER_ERR_BUSY); /* no deadline: it is told, and nothing was applied */
    assert_int_equal(call(serializer, op_inspect("locked")).epoch, epoch);
    submit(&revoking, serializer, revoke, 0);
    PQfinish(guard);
    wait_for(&revoking);
    assert_int_equal(revoking.status, ASTER_OK);
    assert_int_equal(revoking.decision.epoch, epoch + 1);
    aster_serializer_destroy(serializer);
}

static void expect_granted_waiter(struct pending *waiter, int64_t epoch, int64_t freed_ns, int64_t within_ms)
{
    wait_for(waiter);
    assert_int_equal(waiter->status, ASTER_OK);
    assert_int_equal(waiter->decision.outcome, ASTER_GRANTED);
    assert_int_equal(waiter->decision.epoch, epoch);
    assert_true(waiter->answered_ns - freed_ns < within_ms * MS);
}

/* Freed by another process, which knows nothing of this one: told through LISTEN, long before the next poll and the end
 * of the ttl. */
static void a_waiter_is_woken_by_another_process(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    struct aster_serializer *other = open_at(server.conninfo);
    for (int round = 0; round < 5; round++) {
        struct pending waiter;
        int64_t epoch = acquire(other, "r", "a");
        submit(&waiter, serializer, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
        char waiting[256];
        do { /* it is in the table of those who wait */
            postgres_server_do(&server, "sql SELECT count(*) FROM aster.waiter WHERE until > clock_timestamp()",
                               waiting);
        } while (strcmp(waiting, "1") != 0);
        int64_t freed_ns = now_ns();
        assert_int_equal(call(other, op_release("r", "a", epoch)).outcome, ASTER_GRANTED);
        expect_granted_waiter(&waiter, epoch + 2, freed_ns, 2400);
        call(serializer, op_release("r", "b", epoch + 2));
        postgres_server_do(&server, "sql TRUNCATE aster.waiter", NULL);
    }
    aster_serializer_destroy(other);
    aster_serializer_destroy(serializer);
}

static void a_waiter_takes_over_when_the_ttl_of_a_dead_holder_ends(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    struct aster_serializer *dead = open_at(server.conninfo);
    struct pending waiter;
    int64_t granted_ns = now_ns();
    assert_int_equal(call(dead, op_acquire("r", "a", 700)).outcome, ASTER_GRANTED);
    aster_serializer_destroy(dead);
    submit(&waiter, serializer, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    expect_granted_waiter(&waiter, 2, granted_ns + 700 * MS, 1500);
    assert_true(waiter.answered_ns >= granted_ns + 700 * MS - 10 * MS);
    assert_true(waiter.decision.takeover);
    aster_serializer_destroy(serializer);
}

static void waiters_can_be_cancelled_and_are_answered_at_close(void **state)
{
    (void)state;
    struct aster_serializer *serializer = open_store();
    struct pending cancelled;
    struct pending closed;
    struct pending ended;
    acquire(serializer, "r", "a");
    submit(&cancelled, serializer, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    submit(&ended, serializer, op_acquire("r", "d", REQUEST_TTL_MS), 50);
    wait_for(&ended);
    assert_int_equal(ended.status, ASTER_OK);
    assert_int_equal(ended.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    submit(&closed, serializer, op_acquire("r", "c", REQUEST_TTL_MS), 60000);
    while (!is_answered(&cancelled)) { /* it may be on its way to the server just now */
        aster_serializer_cancel(serializer, &cancelled.request);
    }
    wait_for(&cancelled);
    assert_int_equal(cancelled.status, ASTER_ERR_CANCELLED);
    aster_serializer_close(serializer);
    wait_for(&closed);
    assert_int_equal(closed.status, ASTER_ERR_CLOSED);
    aster_serializer_destroy(serializer);
}

/* One bad request in a batch spoils it for nobody else. */
static void requests_that_share_a_statement_fail_alone(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct aster_serializer *serializer = open_store();
    static struct pending pending[COUNT];
    postgres_server_do(&server, "sql UPDATE aster.meta SET ttl_max_ms = 20000", NULL);
    for (int i = 0; i < COUNT; i++) {
        static char names[COUNT][16];
        snprintf(names[i], sizeof names[i], "r%d", i);
        submit(&pending[i], serializer, op_acquire(names[i], "a", i == 7 ? 30000 : REQUEST_TTL_MS), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        wait_for(&pending[i]);
        assert_int_equal(pending[i].status, i == 7 ? ASTER_ERR_INVALID : ASTER_OK);
        assert_true(i == 7 || pending[i].decision.epoch == 1);
    }
    postgres_server_do(&server, "sql UPDATE aster.meta SET ttl_max_ms = 86400000", NULL);
    aster_serializer_destroy(serializer);
}

static void everything_works_behind_pgbouncer_in_transaction_mode(void **state)
{
    (void)state;
    char pooled[256];
    enum aster_reason reason;
    struct pending waiter;
    postgres_server_do(&server, "reset", NULL);
    postgres_server_do(&server, "bouncer", pooled);
    struct aster_serializer *one = open_at(pooled);
    struct aster_serializer *two = open_at(pooled);
    int64_t epoch = acquire(one, "note", "a");
    assert_int_equal(call(two, op_acquire("note", "b", REQUEST_TTL_MS)).reason, ASTER_REASON_HELD_BY_OTHER);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(one, op_renew("note", "a", epoch)).outcome, ASTER_GRANTED);
        assert_int_equal(mutate(one, epoch, "a", execute, "UPDATE note SET text = 'pooled'", &reason), ASTER_OK);
        assert_int_equal(reason, ASTER_REASON_NONE);
        assert_int_equal(mutate(two, epoch, "b", execute, "DELETE FROM note", &reason), ASTER_OK);
        assert_int_equal(reason, ASTER_REASON_NOT_HOLDER);
    }
    submit(&waiter, two, op_acquire("note", "b", REQUEST_TTL_MS), 60000);
    int64_t freed_ns = now_ns();
    assert_int_equal(call(one, op_release("note", "a", epoch)).outcome, ASTER_GRANTED);
    expect_granted_waiter(&waiter, epoch + 2, freed_ns, 2000); /* polled, with jitter */
    aster_serializer_destroy(one);
    aster_serializer_destroy(two);
}

static void a_wrong_schema_or_connection_string_is_refused_at_open(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_postgres_options options = ASTER_POSTGRES_OPTIONS_INIT;
    assert_int_equal(aster_postgres_open("no = string = at all", NULL, &serializer, &error), ASTER_ERR_INVALID);
    options.batch_max = 0;
    assert_int_equal(aster_postgres_open(server.conninfo, &options, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "batch_max"));
    postgres_server_do(&server, "sql UPDATE aster.meta SET version = 2", NULL);
    assert_int_equal(aster_postgres_open(server.conninfo, NULL, &serializer, &error), ASTER_ERR_VERSION);
    postgres_server_do(&server, "sql UPDATE aster.meta SET version = 1", NULL);
    assert_int_equal(aster_postgres_open("host=/nowhere", NULL, &serializer, &error), ASTER_ERR_UNREACHABLE);
    assert_null(serializer);
}

int main(void)
{
    postgres_server_init(&server);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_write_runs_on_the_users_connection_in_the_transaction_of_the_check),
        cmocka_unit_test(broken_connections_are_replaced_without_the_caller_noticing),
        cmocka_unit_test(a_server_that_is_gone_is_told_at_once_and_used_again_when_it_is_back),
        cmocka_unit_test(an_answer_that_was_lost_is_found_again_under_its_id),
        cmocka_unit_test(a_row_that_is_locked_delays_nobody_else),
        cmocka_unit_test(a_waiter_is_woken_by_another_process),
        cmocka_unit_test(a_waiter_takes_over_when_the_ttl_of_a_dead_holder_ends),
        cmocka_unit_test(waiters_can_be_cancelled_and_are_answered_at_close),
        cmocka_unit_test(requests_that_share_a_statement_fail_alone),
        cmocka_unit_test(everything_works_behind_pgbouncer_in_transaction_mode),
        cmocka_unit_test(a_wrong_schema_or_connection_string_is_refused_at_open),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    postgres_server_fini(&server);
    return failed;
}
