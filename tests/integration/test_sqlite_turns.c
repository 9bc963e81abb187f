/* The writes of one process share the file: a lease is renewed in between fenced writes that follow on each other's
 * heels without a pause. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "aster/lease.h"
#include "support/sqlite_store.h"

#define WRITERS 3
#define WRITE_MS 120
#define TTL_MS 1500
#define LENGTH_S 5

struct scene {
    struct sqlite_store store;
    struct aster_lease *lease;
    _Atomic(bool) over;
    _Atomic(int) written;
};

static aster_status write_for_a_while(void *tx, void *user)
{
    (void)tx;
    struct scene *scene = user;
    nanosleep(&(struct timespec){0, WRITE_MS * 1000000}, NULL);
    atomic_fetch_add(&scene->written, 1);
    return ASTER_OK;
}

static void *write_without_a_pause(void *user)
{
    struct scene *scene = user;
    while (!atomic_load(&scene->over)) {
        const struct aster_fence *fence = aster_lease_fence(scene->lease);
        struct aster_verdict verdict = ASTER_VERDICT_INIT;
        aster_mutate_fenced(scene->store.serializer, fence, aster_text("a"), write_for_a_while, scene, &verdict, NULL);
    }
    return NULL;
}

static void a_lease_is_renewed_between_fenced_writes_that_never_pause(void **state)
{
    (void)state;
    static struct scene scene;
    pthread_t writers[WRITERS];
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease_report report;
    options.ttl_ms = TTL_MS;
    sqlite_store_init(&scene.store);
    sqlite_store_close(&scene.store);
    scene.store.options.clock = NULL; /* real threads, real time */
    sqlite_store_open(&scene.store);
    assert_int_equal(aster_lease_acquire(scene.store.serializer, aster_text("r"), aster_text("a"), &options,
                                         &scene.lease, NULL, NULL),
                     ASTER_OK);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, write_without_a_pause, &scene), 0);
    }
    nanosleep(&(struct timespec){LENGTH_S, 0}, NULL);
    aster_lease_report_get(scene.lease, &report);
    atomic_store(&scene.over, true);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    assert_int_equal(report.status, ASTER_LEASE_HELD);
    assert_true(report.renewals >= LENGTH_S * 1000 / TTL_MS);
    assert_true(atomic_load(&scene.written) >= 10); /* and the writes went on, too */
    aster_lease_destroy(scene.lease);
    sqlite_store_fini(&scene.store);
}

static aster_status write_briefly(void *tx, void *user)
{
    (void)tx;
    (void)user;
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    return ASTER_OK;
}

/* Another process that writes without a pause until its parent closes the pipe. */
static void write_in_another_process(const char *path, int ready, int over)
{
    struct aster_serializer *store = NULL;
    struct aster_lease *lease = NULL;
    struct pollfd parent = {over, POLLIN, 0};
    int writes = 0;
    if (aster_sqlite_open(path, NULL, &store, NULL) != ASTER_OK ||
        aster_lease_acquire(store, aster_text("busy"), aster_text("b"), NULL, &lease, NULL, NULL) != ASTER_OK) {
        _exit(1);
    }
    while (poll(&parent, 1, 0) == 0) {
        struct aster_verdict verdict = ASTER_VERDICT_INIT;
        writes += aster_mutate_fenced(store, aster_lease_fence(lease), aster_text("b"), write_briefly, NULL, &verdict,
                                      NULL) == ASTER_OK;
        if (writes == 1 && write(ready, "", 1) != 1) {
            _exit(1);
        }
    }
    _exit(writes >= 100 ? 0 : 2);
}

static void a_lease_is_renewed_while_another_process_writes_without_a_pause(void **state)
{
    (void)state;
    static struct scene scene;
    int ready[2];
    int over[2];
    int status = 0;
    char byte;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease_report report;
    options.ttl_ms = TTL_MS;
    sqlite_store_init(&scene.store);
    sqlite_store_close(&scene.store); /* forked with no database open: SQLite must not be carried across */
    scene.store.options.clock = NULL;
    assert_int_equal(pipe(ready) | pipe(over), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(over[1]);
        write_in_another_process(scene.store.path, ready[1], over[0]);
    }
    close(over[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    sqlite_store_open(&scene.store);
    assert_int_equal(aster_lease_acquire(scene.store.serializer, aster_text("r"), aster_text("a"), &options,
                                         &scene.lease, NULL, NULL),
                     ASTER_OK);
    nanosleep(&(struct timespec){LENGTH_S, 0}, NULL);
    aster_lease_report_get(scene.lease, &report);
    close(over[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0); /* and it did write */
    assert_int_equal(report.status, ASTER_LEASE_HELD);
    aster_lease_destroy(scene.lease);
    sqlite_store_fini(&scene.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_renewed_while_another_process_writes_without_a_pause),
        cmocka_unit_test(a_lease_is_renewed_between_fenced_writes_that_never_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
