/* Several processes on one file: locks that others hold, forked copies. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "aster/sys/serializer.h"
#include "platform/fork.h"
#include "serializer/sqlite/inherited.h"
#include "support/sqlite_store.h"

/* A process that takes and gives the database's write lock on command. It is forked before this process opens any
 * database, because SQLite must not be carried across a fork. */
struct rival {
    pid_t pid;
    int command;
    int answer;
};

static void rival_main(const char *path, int command, int answer)
{
    sqlite3 *db = NULL;
    char verb;
    while (read(command, &verb, 1) == 1) {
        int code = SQLITE_OK;
        if (db == NULL) {
            code = sqlite3_open(path, &db);
            sqlite3_busy_timeout(db, 5000);
        }
        if (code == SQLITE_OK) {
            code = sqlite3_exec(db, verb == 'L' ? "BEGIN IMMEDIATE" : "COMMIT", NULL, NULL, NULL);
        }
        char result = code == SQLITE_OK ? 'y' : 'n';
        if (write(answer, &result, 1) != 1) {
            break;
        }
    }
    _exit(0);
}

static void rival_start(struct rival *rival, const char *path)
{
    int to[2];
    int from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    rival->pid = fork();
    if (rival->pid == 0) {
        close(to[1]);
        close(from[0]);
        rival_main(path, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    rival->command = to[1];
    rival->answer = from[0];
}

static void rival_tell(struct rival *rival, char verb)
{
    char result = 0;
    assert_int_equal(write(rival->command, &verb, 1), 1);
    assert_int_equal(read(rival->answer, &result, 1), 1);
    assert_int_equal(result, 'y');
}

static void rival_stop(struct rival *rival)
{
    close(rival->command);
    close(rival->answer);
    waitpid(rival->pid, NULL, 0);
}

struct fixture {
    struct sqlite_store store;
    struct store_call call;
    struct rival rival;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    struct sqlite_store *store = &fixture.store;
    store->options = (struct aster_sqlite_options)ASTER_SQLITE_OPTIONS_INIT;
    store->options.busy_timeout_ms = 150;
    snprintf(store->directory, sizeof store->directory, "/tmp/aster-test-XXXXXX");
    assert_non_null(mkdtemp(store->directory));
    snprintf(store->path, sizeof store->path, "%s/store.db", store->directory);
    rival_start(&fixture.rival, store->path);
    sqlite_store_open(store);
    fixture.call.serializer = store->serializer;
    assert_int_equal(store_acquire(&fixture.call, "r", "a", 60000), ASTER_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    rival_stop(&fixture->rival);
    store_call_fini(&fixture->call);
    sqlite_store_fini(&fixture->store);
    return 0;
}

static void a_lock_held_too_long_is_busy_and_says_whom_to_look_for(void **state)
{
    struct fixture *fixture = *state;
    rival_tell(&fixture->rival, 'L');
    int64_t start_ns = aster_clock_now_ns(aster_clock_system());
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_ERR_BUSY);
    int64_t waited_ms = (aster_clock_now_ns(aster_clock_system()) - start_ns) / 1000000;
    assert_in_range(waited_ms, 150, 2000);
    assert_non_null(strstr(fixture->call.error.message, "another process"));
    assert_non_null(strstr(fixture->call.error.message, "150 ms"));
    assert_null(strstr(fixture->call.error.message, "database is locked"));
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_ERR_BUSY);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    assert_int_equal(
        aster_mutate_fenced(fixture->store.serializer, &fence, aster_text("a"), NULL, NULL, NULL, &fixture->call.error),
        ASTER_ERR_BUSY);
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.snapshot.lease_revision, 1);
}

static void inspections_and_denials_do_not_wait_for_the_write_lock(void **state)
{
    struct fixture *fixture = *state;
    rival_tell(&fixture->rival, 'L');
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_true(fixture->call.reply.decision.snapshot.held);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 60000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    rival_tell(&fixture->rival, 'U');
}

struct answered {
    struct aster_request request;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done;
    aster_status status;
};

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    (void)decision;
    (void)error;
    struct answered *answered = request->user;
    pthread_mutex_lock(&answered->mutex);
    answered->done = true;
    answered->status = status;
    pthread_cond_broadcast(&answered->changed);
    pthread_mutex_unlock(&answered->mutex);
}

static void submit(struct fixture *fixture, struct answered *answered, enum aster_operation_kind kind,
                   const char *resource, int64_t deadline_ns)
{
    *answered = (struct answered){ASTER_REQUEST_INIT, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
    answered->request.operation.kind = kind;
    answered->request.operation.resource = aster_text(resource);
    answered->request.operation.caller = aster_text("a");
    answered->request.operation.epoch = 1;
    answered->request.deadline_ns = deadline_ns;
    answered->request.complete = complete;
    answered->request.user = answered;
    aster_serializer_submit(fixture->store.serializer, &answered->request);
}

static void submit_renew(struct fixture *fixture, struct answered *answered, int64_t deadline_ns)
{
    submit(fixture, answered, ASTER_OP_RENEW, "r", deadline_ns);
}

static aster_status wait_answered(struct answered *answered)
{
    pthread_mutex_lock(&answered->mutex);
    while (!answered->done) {
        pthread_cond_wait(&answered->changed, &answered->mutex);
    }
    pthread_mutex_unlock(&answered->mutex);
    return answered->status;
}

static void a_deadline_that_passes_while_the_lock_is_held_is_a_timeout_and_applies_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct answered answered;
    rival_tell(&fixture->rival, 'L');
    submit_renew(fixture, &answered, aster_clock_now_ns(aster_clock_system()) + 20000000);
    assert_int_equal(wait_answered(&answered), ASTER_ERR_TIMEOUT);
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.snapshot.lease_revision, 0);
}

static void a_request_that_waits_for_the_lock_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct answered answered;
    rival_tell(&fixture->rival, 'L');
    submit_renew(fixture, &answered, 0);
    aster_serializer_cancel(fixture->store.serializer, &answered.request);
    assert_int_equal(wait_answered(&answered), ASTER_ERR_CANCELLED);
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.snapshot.lease_revision, 0);
}

static void a_lock_given_back_in_time_costs_nothing_but_the_wait(void **state)
{
    struct fixture *fixture = *state;
    sqlite_store_close(&fixture->store);
    fixture->store.options.busy_timeout_ms = 30000;
    sqlite_store_open(&fixture->store);
    fixture->call.serializer = fixture->store.serializer;
    struct answered answered;
    rival_tell(&fixture->rival, 'L');
    submit_renew(fixture, &answered, 0);
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK); /* the renewal has met the lock by then */
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(wait_answered(&answered), ASTER_OK);
}

static void closing_answers_what_waits_for_the_lock(void **state)
{
    struct fixture *fixture = *state;
    struct answered answered;
    rival_tell(&fixture->rival, 'L');
    submit_renew(fixture, &answered, 0);
    aster_serializer_close(fixture->store.serializer);
    assert_int_equal(wait_answered(&answered), ASTER_ERR_CLOSED);
    rival_tell(&fixture->rival, 'U');
}

static void one_bad_request_of_a_commit_does_not_fail_the_others(void **state)
{
    struct fixture *fixture = *state;
    struct answered good;
    struct answered damaged;
    struct answered late;
    sqlite_store_close(&fixture->store);
    fixture->store.options.busy_timeout_ms = 30000;
    sqlite_store_open(&fixture->store);
    fixture->call.serializer = fixture->store.serializer;
    assert_int_equal(store_acquire(&fixture->call, "damaged", "a", 60000), ASTER_OK);
    sqlite_store_execute(&fixture->store, "UPDATE aster_lease SET epoch = 5 WHERE resource = 'damaged'");
    rival_tell(&fixture->rival, 'L');
    submit(fixture, &damaged, ASTER_OP_RELEASE, "damaged", 0);
    submit(fixture, &good, ASTER_OP_RELEASE, "r", 0);
    submit(fixture, &late, ASTER_OP_RELEASE, "r", 0);
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(wait_answered(&damaged), ASTER_ERR_CORRUPT);
    assert_int_equal(wait_answered(&good), ASTER_OK);
    assert_int_equal(wait_answered(&late), ASTER_OK);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT epoch FROM aster_lease WHERE resource = 'r'"), 2);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit WHERE kind = 3"), 1);
}

static void more_requests_than_the_queue_holds_are_refused_with_its_size(void **state)
{
    struct fixture *fixture = *state;
    struct answered waiting[3];
    sqlite_store_close(&fixture->store);
    fixture->store.options.queue_max = 2;
    sqlite_store_open(&fixture->store);
    fixture->call.serializer = fixture->store.serializer;
    rival_tell(&fixture->rival, 'L');
    submit_renew(fixture, &waiting[0], 0);
    submit_renew(fixture, &waiting[1], 0);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_ERR_LIMIT);
    assert_non_null(strstr(fixture->call.error.message, "queue_max is 2"));
    submit_renew(fixture, &waiting[2], 0); /* other traffic must not cost a lease */
    rival_tell(&fixture->rival, 'U');
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(wait_answered(&waiting[i]), ASTER_OK);
    }
}

static void a_file_that_was_replaced_is_not_written_any_more(void **state)
{
    struct fixture *fixture = *state;
    char aside[128];
    snprintf(aside, sizeof aside, "%s/aside.db", fixture->store.directory);
    assert_int_equal(rename(fixture->store.path, aside), 0);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_ERR_IO);
    assert_non_null(strstr(fixture->call.error.message, "moved"));
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    assert_int_not_equal(
        aster_mutate_fenced(fixture->store.serializer, &fence, aster_text("a"), NULL, NULL, NULL, NULL), ASTER_OK);
    assert_int_equal(rename(aside, fixture->store.path), 0);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
}

/* What a forked child sees; returned as its exit code, a bit per failed expectation. */
static int child_checks(struct fixture *fixture)
{
    int failed = 0;
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    failed |= store_release(&fixture->call, "r", "a", 1) != ASTER_ERR_FORKED ? 1 : 0;
    failed |= aster_mutate_fenced(fixture->store.serializer, &fence, aster_text("a"), NULL, NULL, NULL, NULL) !=
                      ASTER_ERR_FORKED
                  ? 2
                  : 0;
    struct aster_serializer *again = NULL;
    failed |= aster_sqlite_open(fixture->store.path, NULL, &again, NULL) != ASTER_ERR_FORKED ? 4 : 0;
    struct aster_file_identity other; /* anything else may be opened */
    struct aster_opened *opened = NULL;
    failed |= aster_file_identify(fixture->store.directory, &other, NULL) != ASTER_OK ||
                      aster_opened_note(&other, aster_fork_generation(NULL), &opened, NULL) != ASTER_OK
                  ? 8
                  : 0;
    aster_serializer_close(fixture->store.serializer);
    aster_serializer_destroy(fixture->store.serializer);
    return failed;
}

static void a_forked_child_can_do_nothing_and_harms_nothing(void **state)
{
    struct fixture *fixture = *state;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(child_checks(fixture));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    rival_tell(&fixture->rival, 'L'); /* the locks of both processes still exclude each other */
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_ERR_BUSY);
    rival_tell(&fixture->rival, 'U');
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_lock_held_too_long_is_busy_and_says_whom_to_look_for),
        STORE_TEST(inspections_and_denials_do_not_wait_for_the_write_lock),
        STORE_TEST(a_deadline_that_passes_while_the_lock_is_held_is_a_timeout_and_applies_nothing),
        STORE_TEST(a_request_that_waits_for_the_lock_can_be_cancelled),
        STORE_TEST(a_lock_given_back_in_time_costs_nothing_but_the_wait),
        STORE_TEST(closing_answers_what_waits_for_the_lock),
        STORE_TEST(one_bad_request_of_a_commit_does_not_fail_the_others),
        STORE_TEST(more_requests_than_the_queue_holds_are_refused_with_its_size),
        STORE_TEST(a_file_that_was_replaced_is_not_written_any_more),
        STORE_TEST(a_forked_child_can_do_nothing_and_harms_nothing),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
