/* Processes that work on one file and are killed at random points. Nothing that was acknowledged may be lost, nobody
 * may be granted what another holds, and the file stays intact. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

#include "support/seed.h"
#include "support/sqlite_store.h"

#define WORKERS 4
#define RESOURCES 3
#define SECONDS 5
#define EPOCHS_MAX 200000

/* What a worker was told, sent in one atomic write to the parent. */
struct note {
    enum aster_operation_kind kind;
    int resource;
    int64_t epoch;
    int64_t value_revision;
    int64_t worker;
};

static void name_of(int resource, char name[8])
{
    snprintf(name, 8, "r%d", resource);
}

static void tell(int pipe, enum aster_operation_kind kind, int resource, const struct aster_decision *decision,
                 int64_t worker)
{
    const struct note note = {kind, resource, decision->epoch, decision->snapshot.value_revision, worker};
    if (write(pipe, &note, sizeof note) != (ssize_t)sizeof note) {
        _exit(3);
    }
}

static bool granted(const struct store_call *call, aster_status status)
{
    if (status != ASTER_OK && status != ASTER_ERR_BUSY) {
        fprintf(stderr, "worker: %s\n", call->error.message);
        _exit(4);
    }
    return status == ASTER_OK && call->reply.decision.outcome == ASTER_GRANTED;
}

/* Acquire, put, renew, release, for ever. */
static void work(const char *path, int pipe, int64_t worker)
{
    struct sqlite_store store = {.options = ASTER_SQLITE_OPTIONS_INIT};
    struct store_call call = {.reply = ASTER_REPLY_INIT};
    char holder[32];
    store.options.history_max = EPOCHS_MAX;
    snprintf(holder, sizeof holder, "w%lld", (long long)worker);
    while (aster_sqlite_open(path, &store.options, &call.serializer, &call.error) != ASTER_OK) {
        if (call.error.status != ASTER_ERR_BUSY) {
            fprintf(stderr, "worker: %s\n", call.error.message);
            _exit(2);
        }
    }
    for (uint64_t seed = test_seed((uint64_t)worker);; seed = seed * UINT64_C(6364136223846793005) + 99) {
        int resource = (int)((seed >> 40) % RESOURCES);
        char name[8];
        name_of(resource, name);
        if (!granted(&call, store_acquire(&call, name, holder, 100))) {
            continue;
        }
        int64_t epoch = call.reply.decision.epoch;
        tell(pipe, ASTER_OP_ACQUIRE, resource, &call.reply.decision, worker);
        const struct aster_fence fence = {aster_text(name), epoch, aster_text(holder)};
        int64_t revision = call.reply.decision.snapshot.value_revision;
        if (granted(&call, aster_put(call.serializer, &fence, aster_text(holder), revision, aster_text(holder),
                                     &call.reply, &call.error))) {
            tell(pipe, ASTER_OP_PUT, resource, &call.reply.decision, worker);
        }
        granted(&call, store_renew(&call, name, holder, epoch));
        if (granted(&call, store_release(&call, name, holder, epoch))) {
            tell(pipe, ASTER_OP_RELEASE, resource, &call.reply.decision, worker);
        }
    }
}

static pid_t start(const char *path, int pipe, int64_t worker)
{
    pid_t pid = fork();
    if (pid == 0) {
        work(path, pipe, worker);
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

struct history {
    int64_t epochs[RESOURCES]; /* the newest event's */
    bool held[RESOURCES];
    unsigned char kinds[RESOURCES][EPOCHS_MAX]; /* which event brought this epoch */
    int64_t workers[RESOURCES][EPOCHS_MAX];
    int64_t events;
};

static struct history history;

static bool replay_event(const struct aster_event *event, void *user)
{
    (void)user;
    int resource = ((const char *)event->resource.data)[1] - '0';
    bool takes = event->kind == ASTER_EVENT_GRANTED || event->kind == ASTER_EVENT_TAKEOVER;
    assert_in_range(resource, 0, RESOURCES - 1);
    if (event->kind == ASTER_EVENT_FENCE_REJECTED) { /* a put by a worker that had been replaced */
        assert_true(event->carried_epoch < event->epoch && event->epoch == history.epochs[resource]);
        return true;
    }
    if (event->epoch != history.epochs[resource] + 1) {
        fail_msg("epoch %lld follows %lld", (long long)event->epoch, (long long)history.epochs[resource]);
    }
    if (event->kind == ASTER_EVENT_GRANTED) {
        assert_false(history.held[resource]);
    } else {
        assert_true(history.held[resource]);
    }
    assert_true(takes || event->kind == ASTER_EVENT_RELEASED);
    history.epochs[resource] = event->epoch;
    history.held[resource] = takes;
    history.kinds[resource][event->epoch] = (unsigned char)event->kind;
    char actor[32] = "";
    memcpy(actor, event->actor.data, event->actor.size);
    history.workers[resource][event->epoch] = strtoll(actor + 1, NULL, 10);
    history.events++;
    return true;
}

struct notes {
    struct note *list;
    size_t count;
    size_t capacity;
};

static void drain(int pipe, struct notes *notes)
{
    struct note note;
    ssize_t got;
    while ((got = read(pipe, &note, sizeof note)) > 0) {
        assert_int_equal(got, sizeof note);
        if (notes->count == notes->capacity) {
            notes->capacity = notes->capacity * 2 + 1024;
            notes->list = realloc(notes->list, notes->capacity * sizeof note);
            assert_non_null(notes->list);
        }
        notes->list[notes->count++] = note;
    }
}

static void check_note(const struct note *note, const int64_t *value_revisions)
{
    unsigned char kind = history.kinds[note->resource][note->epoch];
    switch (note->kind) {
    case ASTER_OP_ACQUIRE:
        assert_true(kind == ASTER_EVENT_GRANTED || kind == ASTER_EVENT_TAKEOVER);
        assert_int_equal(history.workers[note->resource][note->epoch], note->worker);
        break;
    case ASTER_OP_RELEASE:
        assert_int_equal(kind, ASTER_EVENT_RELEASED);
        assert_int_equal(history.workers[note->resource][note->epoch], note->worker);
        break;
    default:
        assert_true(note->value_revision <= value_revisions[note->resource]);
        break;
    }
}

/* No two puts may have been told that they made the same revision. */
static void check_puts_are_distinct(const struct notes *notes)
{
    static unsigned char seen[RESOURCES][EPOCHS_MAX];
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *note = &notes->list[i];
        if (note->kind == ASTER_OP_PUT) {
            assert_int_equal(seen[note->resource][note->value_revision], 0);
            seen[note->resource][note->value_revision] = 1;
        }
    }
}

static void check_all(struct sqlite_store *store, const struct notes *notes)
{
    int64_t value_revisions[RESOURCES];
    store->options.history_max = EPOCHS_MAX;
    sqlite_store_open(store);
    struct store_call call = {.serializer = store->serializer, .reply = ASTER_REPLY_INIT};
    const struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    assert_int_equal(aster_history(store->serializer, &query, replay_event, NULL, NULL), ASTER_OK);
    for (int i = 0; i < RESOURCES; i++) {
        char name[8];
        name_of(i, name);
        assert_int_equal(store_inspect(&call, name), ASTER_OK);
        assert_int_equal(call.reply.decision.snapshot.epoch, history.epochs[i]);
        assert_int_equal(call.reply.decision.snapshot.held, history.held[i]);
        value_revisions[i] = call.reply.decision.snapshot.value_revision;
    }
    for (size_t i = 0; i < notes->count; i++) {
        check_note(&notes->list[i], value_revisions);
    }
    check_puts_are_distinct(notes);
    store_call_fini(&call);
    assert_int_equal(sqlite_store_ask(store, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

static void nothing_acknowledged_is_lost_when_processes_are_killed(void **state)
{
    (void)state;
    struct sqlite_store store = {.options = ASTER_SQLITE_OPTIONS_INIT};
    struct notes notes = {NULL, 0, 0};
    pid_t pids[WORKERS];
    int pipes[2];
    int64_t worker = 0;
    int kills = 0;
    snprintf(store.directory, sizeof store.directory, "/tmp/aster-test-XXXXXX");
    assert_non_null(mkdtemp(store.directory));
    snprintf(store.path, sizeof store.path, "%s/store.db", store.directory);
    assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
    assert_int_equal(fcntl(pipes[1], F_SETFL, 0), 0); /* only the reader must not block */
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = start(store.path, pipes[1], ++worker);
    }
    uint64_t seed = test_seed(7);
    int64_t end_ns = aster_clock_now_ns(aster_clock_system()) + SECONDS * INT64_C(1000000000);
    while (aster_clock_now_ns(aster_clock_system()) < end_ns) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct pollfd readable = {pipes[0], POLLIN, 0};
        poll(&readable, 1, 1);
        drain(pipes[0], &notes);
        usleep((useconds_t)((seed >> 33) % 40000));
        drain(pipes[0], &notes);
        int victim = (int)((seed >> 50) % WORKERS);
        int status = 0;
        kill(pids[victim], SIGKILL);
        assert_int_equal(waitpid(pids[victim], &status, 0), pids[victim]);
        assert_true(WIFSIGNALED(status)); /* it had not stopped by itself, complaining */
        kills++;
        pids[victim] = start(store.path, pipes[1], ++worker);
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    drain(pipes[0], &notes);
    close(pipes[0]);
    close(pipes[1]);
    check_all(&store, &notes);
    print_message("%d kills, %zu acknowledgements, %lld events\n", kills, notes.count, (long long)history.events);
    assert_true(kills > 20);
    assert_true(notes.count > 100);
    free(notes.list);
    store.clock = NULL;
    sqlite_store_fini(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_when_processes_are_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
