/* Row 122: what a child process inherits by fork() is a copy that can do nothing. Real threads and a real clock. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "support/unit.h"

#if defined(__SANITIZE_THREAD__)
#define THREADS_AFTER_FORK 0 /* ThreadSanitizer ends a child that starts one */
#else
#define THREADS_AFTER_FORK 1
#endif

/* In the child: exit with the number of the first expectation that does not hold. */
#define EXPECT(number, condition)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            _exit(number);                                                                                             \
        }                                                                                                              \
    } while (0)

static struct aster_serializer *open_store(void)
{
    struct aster_serializer *store = NULL;
    assert_int_equal(aster_memory_open(NULL, &store, NULL), ASTER_OK);
    return store;
}

static struct aster_lease *hold(struct aster_serializer *store, struct aster_runtime *runtime)
{
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 3000;
    options.renew_interval_ms = 50;
    options.runtime = runtime;
    struct aster_lease *lease = NULL;
    assert_int_equal(aster_lease_acquire(store, aster_text("r"), aster_text("parent"), &options, &lease, NULL, NULL),
                     ASTER_OK);
    assert_non_null(lease);
    return lease;
}

static void child_uses_what_it_inherited(struct aster_serializer *store, struct aster_lease *lease)
{
    struct aster_lease_report report;
    struct aster_error error = ASTER_ERROR_INIT;
    EXPECT(1, aster_lease_fence(lease) == NULL);
    aster_lease_report_get(lease, &report);
    EXPECT(2, report.reason == ASTER_LEASE_REASON_FORKED && report.remaining_ns == 0);
    EXPECT(3, aster_lease_release(lease, 1000, NULL, &error) == ASTER_ERR_FORKED);
    EXPECT(4, error.status == ASTER_ERR_FORKED);
    EXPECT(5, aster_lease_wait_acquired(lease, 1000, NULL, NULL) == ASTER_ERR_FORKED);
    EXPECT(6, aster_lease_fd(lease) == ASTER_ERR_FORKED);
    aster_lease_cancel(lease);
    aster_lease_quiesce(lease);
    aster_lease_drop(lease);
    aster_lease_destroy(lease);
    aster_serializer_close(store);
    aster_serializer_destroy(store);
}

static void child_has_leases_of_its_own(struct aster_serializer *parents)
{
#if THREADS_AFTER_FORK
    struct aster_lease *lease = NULL;
    EXPECT(11, aster_lease_acquire(parents, aster_text("r"), aster_text("child"), NULL, &lease, NULL, NULL) ==
                   ASTER_ERR_FORKED);
    struct aster_serializer *own = NULL;
    EXPECT(12, aster_memory_open(NULL, &own, NULL) == ASTER_OK);
    EXPECT(13, aster_lease_acquire(own, aster_text("r"), aster_text("child"), NULL, &lease, NULL, NULL) == ASTER_OK);
    EXPECT(14, lease != NULL && aster_lease_fence(lease) != NULL);
    EXPECT(15, aster_lease_release(lease, 1000, NULL, NULL) == ASTER_OK);
    aster_lease_destroy(lease);
    aster_serializer_destroy(own);
#else
    (void)parents;
#endif
}

static void assert_ends_well(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_child_has_no_fence_sends_nothing_and_the_parent_does_not_notice(void **state)
{
    (void)state;
    struct aster_serializer *store = open_store();
    struct aster_lease *lease = hold(store, NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        child_has_leases_of_its_own(store);
        child_uses_what_it_inherited(store, lease);
        _exit(0);
    }
    assert_ends_well(child);
    assert_int_equal(aster_lease_fence(lease)->epoch, 1);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(store, aster_text("r"), &reply, NULL), ASTER_OK);
    assert_true(reply.decision.snapshot.held);
    assert_int_equal(reply.decision.snapshot.epoch, 1);
    aster_reply_fini(&reply);
    assert_int_equal(aster_lease_release(lease, 1000, NULL, NULL), ASTER_OK);
    aster_lease_destroy(lease);
    aster_serializer_destroy(store);
}

static void a_runtime_of_the_parent_is_refused_in_the_child(void **state)
{
    (void)state;
    struct aster_serializer *store = open_store();
    struct aster_runtime *runtime = NULL;
    assert_int_equal(aster_runtime_create(NULL, &runtime, NULL), ASTER_OK);
    struct aster_lease *lease = hold(store, runtime);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
        options.runtime = runtime;
        struct aster_lease *other = NULL;
        struct aster_error error = ASTER_ERROR_INIT;
        EXPECT(1, aster_lease_start(store, aster_text("s"), aster_text("child"), &options, &other, &error) ==
                      ASTER_ERR_FORKED);
        EXPECT(2, strstr(error.message, "fork") != NULL && other == NULL);
        aster_lease_destroy(lease);
        aster_runtime_destroy(runtime);
        _exit(0);
    }
    assert_ends_well(child);
    assert_non_null(aster_lease_fence(lease));
    aster_lease_destroy(lease);
    assert_int_equal(aster_runtime_handles(runtime), 0);
    aster_runtime_destroy(runtime);
    aster_serializer_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_no_fence_sends_nothing_and_the_parent_does_not_notice),
        cmocka_unit_test(a_runtime_of_the_parent_is_refused_in_the_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
