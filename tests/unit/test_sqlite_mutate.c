#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/sqlite_store.h"

struct fixture {
    struct sqlite_store store;
    struct store_call call;
};

/* A resource "r" held by "a" under epoch 1, and a table of the user's. */
static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    sqlite_store_init(&fixture.store);
    fixture.call.serializer = fixture.store.serializer;
    sqlite_store_execute(&fixture.store, "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT UNIQUE)");
    assert_int_equal(store_acquire(&fixture.call, "r", "a", 10000), ASTER_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_call_fini(&fixture->call);
    sqlite_store_fini(&fixture->store);
    return 0;
}

static const struct aster_fence current = {{"r", 1}, 1, {"a", 1}};

/* What a mutation does: some SQL, whose result code it may ignore, and the status it returns. */
struct script {
    const char *first;
    const char *then;
    int first_code;
    int then_code;
    aster_status status;
    int runs;
};

static aster_status run_script(void *tx, void *user)
{
    struct script *script = user;
    script->runs++;
    script->first_code = sqlite3_exec(tx, script->first, NULL, NULL, NULL);
    if (script->then != NULL) {
        script->then_code = sqlite3_exec(tx, script->then, NULL, NULL, NULL);
    }
    return script->status;
}

static aster_status mutate(struct fixture *fixture, const struct aster_fence *fence, const char *writer,
                           struct script *script, struct aster_verdict *verdict)
{
    return aster_mutate_fenced(fixture->store.serializer, fence, aster_text(writer), run_script, script, verdict,
                               &fixture->call.error);
}

static int64_t rows(struct fixture *fixture)
{
    return sqlite_store_ask(&fixture->store, "SELECT count(*) FROM t");
}

static void the_holder_writes_and_the_write_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct script script = {.first = "INSERT INTO t VALUES (1, 'x')"};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    assert_int_equal(mutate(fixture, &current, "a", &script, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_NONE);
    assert_int_equal(script.runs, 1);
    assert_int_equal(rows(fixture), 1);
}

static void a_stale_future_foreign_or_free_fence_is_rejected_before_the_mutation_runs(void **state)
{
    struct fixture *fixture = *state;
    struct script script = {.first = "INSERT INTO t VALUES (1, 'x')"};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    const struct aster_fence stale = {aster_text("r"), 0, aster_text("a")};
    assert_int_equal(mutate(fixture, &stale, "a", &script, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_STALE_EPOCH);
    assert_int_equal(verdict.current_epoch, 1);
    const struct aster_fence future = {aster_text("r"), 2, aster_text("a")};
    assert_int_equal(mutate(fixture, &future, "a", &script, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_FUTURE_EPOCH);
    assert_int_equal(mutate(fixture, &current, "b", &script, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_NOT_HOLDER);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
    const struct aster_fence freed = {aster_text("r"), 2, aster_text("a")};
    assert_int_equal(mutate(fixture, &freed, "a", &script, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_NOT_HELD);
    assert_int_equal(script.runs, 0);
    assert_int_equal(rows(fixture), 0);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit WHERE kind = 7"), 4);
}

static void a_failing_mutation_is_rolled_back_and_its_status_returned(void **state)
{
    struct fixture *fixture = *state;
    struct script script = {.first = "INSERT INTO t VALUES (1, 'x')", .status = ASTER_ERR_LIMIT};
    struct aster_verdict verdict = {ASTER_REASON_EXPIRED, 77, 77};
    assert_int_equal(mutate(fixture, &current, "a", &script, &verdict), ASTER_ERR_LIMIT);
    assert_int_equal(verdict.carried_epoch, 77); /* untouched */
    assert_int_equal(rows(fixture), 0);
}

static void a_mutation_cannot_end_the_transaction(void **state)
{
    struct fixture *fixture = *state;
    static const char *const attempts[] = {"COMMIT", "ROLLBACK", "BEGIN", "END"};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        struct script script = {.first = attempts[i], .then = "INSERT INTO t (text) VALUES (NULL)"};
        assert_int_equal(mutate(fixture, &current, "a", &script, NULL), ASTER_OK);
        assert_int_not_equal(script.first_code, SQLITE_OK);
        assert_int_equal(script.then_code, SQLITE_OK);
    }
    assert_int_equal(rows(fixture), 4);
    struct script savepoint = {.first = "SAVEPOINT s; INSERT INTO t (text) VALUES ('gone'); ROLLBACK TO s; RELEASE s"};
    assert_int_equal(mutate(fixture, &current, "a", &savepoint, NULL), ASTER_OK);
    assert_int_equal(savepoint.first_code, SQLITE_OK);
    assert_int_equal(rows(fixture), 4);
}

static void nothing_is_written_after_a_statement_rolled_the_transaction_back(void **state)
{
    struct fixture *fixture = *state;
    struct script script = {.first = "INSERT INTO t VALUES (1, 'x'); INSERT OR ROLLBACK INTO t VALUES (1, 'y')",
                            .then = "INSERT INTO t VALUES (2, 'outside')"};
    assert_int_equal(mutate(fixture, &current, "a", &script, NULL), ASTER_ERR_INVALID);
    assert_int_not_equal(script.then_code, SQLITE_OK);
    assert_int_equal(rows(fixture), 0);
    struct script next = {.first = "INSERT INTO t VALUES (3, 'z')"};
    assert_int_equal(mutate(fixture, &current, "a", &next, NULL), ASTER_OK);
    assert_int_equal(rows(fixture), 1);
}

static void a_mutation_cannot_change_the_leases(void **state)
{
    struct fixture *fixture = *state;
    static const char *const attempts[] = {"UPDATE aster_lease SET epoch = 9", "DELETE FROM ASTER_LEASE",
                                           "DROP TABLE aster_audit", "UPDATE aster_meta SET floor = 0"};
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        struct script script = {.first = attempts[i], .then = "SELECT epoch FROM aster_lease"};
        assert_int_equal(mutate(fixture, &current, "a", &script, NULL), ASTER_OK);
        assert_int_equal(script.first_code, SQLITE_AUTH);
        assert_int_equal(script.then_code, SQLITE_OK);
    }
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
}

static aster_status leave_statement_open(void *tx, void *user)
{
    sqlite3_stmt **statement = user;
    assert_int_equal(sqlite3_exec(tx, "INSERT INTO t VALUES (1, 'x'), (2, 'y')", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(tx, "DELETE FROM t RETURNING id", -1, statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(*statement), SQLITE_ROW);
    return ASTER_OK;
}

static void a_statement_left_open_does_not_hold_the_transaction(void **state)
{
    struct fixture *fixture = *state;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(aster_mutate_fenced(fixture->store.serializer, &current, aster_text("a"), leave_statement_open,
                                         &statement, NULL, &fixture->call.error),
                     ASTER_OK);
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    struct script next = {.first = "INSERT INTO t VALUES (3, 'z')"};
    assert_int_equal(mutate(fixture, &current, "a", &next, NULL), ASTER_OK);
    sqlite3_finalize(statement);
}

struct inside {
    struct fixture *fixture;
    aster_status inspect;
    aster_status mutate;
    aster_status list;
};

static bool visit(const struct aster_snapshot *snapshot, void *user)
{
    (void)snapshot;
    (void)user;
    return true;
}

static aster_status call_back(void *tx, void *user)
{
    (void)tx;
    struct inside *inside = user;
    struct script script = {.first = "SELECT 1"};
    inside->inspect = store_inspect(&inside->fixture->call, "other");
    inside->mutate = mutate(inside->fixture, &current, "a", &script, NULL);
    inside->list = aster_list(inside->fixture->store.serializer, aster_text(""), visit, NULL, NULL);
    return ASTER_OK;
}

static void calling_the_store_from_inside_a_mutation_is_refused_and_never_deadlocks(void **state)
{
    struct fixture *fixture = *state;
    struct inside inside = {.fixture = fixture};
    assert_int_equal(aster_mutate_fenced(fixture->store.serializer, &current, aster_text("a"), call_back, &inside, NULL,
                                         &fixture->call.error),
                     ASTER_OK);
    assert_int_equal(inside.inspect, ASTER_ERR_REENTRANT);
    assert_int_equal(inside.mutate, ASTER_ERR_REENTRANT);
    assert_int_equal(inside.list, ASTER_ERR_REENTRANT);
    assert_int_equal(store_inspect(&fixture->call, "other"), ASTER_OK);
}

/* A mutation that stays inside until it is told to go. */
struct gate {
    struct fixture *fixture;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool inside;
    bool leave;
};

static aster_status stay(void *tx, void *user)
{
    struct gate *gate = user;
    assert_int_equal(sqlite3_exec(tx, "INSERT INTO t VALUES (1, 'slow')", NULL, NULL, NULL), SQLITE_OK);
    pthread_mutex_lock(&gate->mutex);
    gate->inside = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->leave) {
        pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    pthread_mutex_unlock(&gate->mutex);
    return ASTER_OK;
}

static void *run_slow(void *user)
{
    struct gate *gate = user;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status =
        aster_mutate_fenced(gate->fixture->store.serializer, &current, aster_text("a"), stay, gate, NULL, &error);
    return status == ASTER_OK ? gate : NULL;
}

static void a_revoke_waits_for_a_running_mutation_and_reads_do_not(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate = {fixture, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
    fixture->store.options.busy_timeout_ms = 50;
    sqlite_store_close(&fixture->store);
    sqlite_store_open(&fixture->store);
    fixture->call.serializer = fixture->store.serializer;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_slow, &gate), 0);
    pthread_mutex_lock(&gate.mutex);
    while (!gate.inside) {
        pthread_cond_wait(&gate.changed, &gate.mutex);
    }
    pthread_mutex_unlock(&gate.mutex);
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(aster_revoke(fixture->store.serializer, aster_text("r"), aster_text("op"), -1,
                                  &fixture->call.reply, &fixture->call.error),
                     ASTER_ERR_BUSY);
    struct script other = {.first = "SELECT 1"};
    assert_int_equal(mutate(fixture, &current, "a", &other, NULL), ASTER_ERR_BUSY);
    pthread_mutex_lock(&gate.mutex);
    gate.leave = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
    void *done = NULL;
    pthread_join(thread, &done);
    assert_non_null(done);
    assert_int_equal(rows(fixture), 1);
    assert_int_equal(
        aster_revoke(fixture->store.serializer, aster_text("r"), aster_text("op"), 1, &fixture->call.reply, NULL),
        ASTER_OK);
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct script late = {.first = "INSERT INTO t VALUES (2, 'late')"};
    assert_int_equal(mutate(fixture, &current, "a", &late, &verdict), ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_STALE_EPOCH);
    assert_int_equal(rows(fixture), 1);
}

static void a_protected_table_accepts_the_mutation_of_its_own_fence_only(void **state)
{
    struct fixture *fixture = *state;
    char *sql = NULL;
    assert_int_equal(aster_sqlite_protect_sql("t", aster_text("r"), NULL, &sql, NULL), ASTER_OK);
    sqlite_store_execute(&fixture->store, sql);
    sqlite3_free(sql);
    struct script own = {.first = "INSERT INTO t VALUES (1, 'x')"};
    assert_int_equal(mutate(fixture, &current, "a", &own, NULL), ASTER_OK);
    assert_int_equal(own.first_code, SQLITE_OK);
    assert_int_equal(store_acquire(&fixture->call, "other", "a", 10000), ASTER_OK);
    const struct aster_fence other = {aster_text("other"), 1, aster_text("a")};
    struct script foreign = {.first = "INSERT INTO t VALUES (2, 'y')"};
    assert_int_equal(mutate(fixture, &other, "a", &foreign, NULL), ASTER_OK);
    assert_int_not_equal(foreign.first_code, SQLITE_OK);
    assert_int_equal(rows(fixture), 1);
}

static void what_a_mutation_declares_ends_with_it(void **state)
{
    struct fixture *fixture = *state;
    char *sql = NULL;
    assert_int_equal(store_acquire(&fixture->call, "other", "b", 10000), ASTER_OK);
    assert_int_equal(aster_sqlite_protect_sql("t", aster_text("other"), NULL, &sql, NULL), ASTER_OK);
    sqlite_store_execute(&fixture->store, sql);
    sqlite3_free(sql);
    struct script declares = {.first = "SELECT aster_fence('other', 1, 'b')"};
    assert_int_equal(mutate(fixture, &current, "a", &declares, NULL), ASTER_OK);
    assert_int_equal(declares.first_code, SQLITE_OK);
    struct script next = {.first = "INSERT INTO t VALUES (1, 'x')"};
    assert_int_equal(mutate(fixture, &current, "a", &next, NULL), ASTER_OK);
    assert_int_not_equal(next.first_code, SQLITE_OK);
    assert_int_equal(rows(fixture), 0);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(the_holder_writes_and_the_write_is_there),
        STORE_TEST(a_stale_future_foreign_or_free_fence_is_rejected_before_the_mutation_runs),
        STORE_TEST(a_failing_mutation_is_rolled_back_and_its_status_returned),
        STORE_TEST(a_mutation_cannot_end_the_transaction),
        STORE_TEST(nothing_is_written_after_a_statement_rolled_the_transaction_back),
        STORE_TEST(a_mutation_cannot_change_the_leases),
        STORE_TEST(what_a_mutation_declares_ends_with_it),
        STORE_TEST(a_statement_left_open_does_not_hold_the_transaction),
        STORE_TEST(calling_the_store_from_inside_a_mutation_is_refused_and_never_deadlocks),
        STORE_TEST(a_revoke_waits_for_a_running_mutation_and_reads_do_not),
        STORE_TEST(a_protected_table_accepts_the_mutation_of_its_own_fence_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
