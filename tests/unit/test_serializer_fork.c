/* A forked child has copies of locks and no threads: it gets an answer, touches nothing, and the parent goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "aster/memory.h"
#include "support/requests.h"

#define CHECK(condition, code)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            _exit(code);                                                                                               \
        }                                                                                                              \
    } while (0)

static aster_status no_write(void *tx, void *user)
{
    (void)tx;
    (void)user;
    return ASTER_OK;
}

static bool no_row(const struct aster_snapshot *row, void *user)
{
    (void)row;
    (void)user;
    return true;
}

static void use_in_child(struct aster_serializer *serializer)
{
    struct asked asked;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    ask(serializer, &asked, op_release("r", "a", 1), 0);
    CHECK(asked.answers == 1 && asked.status == ASTER_ERR_FORKED, 2);
    CHECK(aster_inspect(serializer, aster_text("r"), &reply, &error) == ASTER_ERR_FORKED, 3);
    CHECK(strstr(error.message, "parent") != NULL, 4);
    CHECK(aster_mutate_fenced(serializer, &fence, fence.holder, no_write, NULL, &verdict, NULL) == ASTER_ERR_FORKED, 5);
    CHECK(aster_list(serializer, aster_text(""), no_row, NULL, NULL) == ASTER_ERR_FORKED, 6);
    struct aster_serializer *own = NULL;
    CHECK(aster_memory_open(NULL, &own, NULL) == ASTER_OK, 7);
    CHECK(acquire_now(own, "r", "child") == 1, 8);
    aster_serializer_destroy(own);
    aster_serializer_close(serializer);
    aster_serializer_destroy(serializer); /* must not wait for threads that do not exist */
    _exit(0);
}

static void expect_child_succeeds(struct aster_serializer *serializer)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        use_in_child(serializer);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_child_is_refused_and_the_parents_lease_is_unchanged(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    assert_int_equal(aster_memory_open(NULL, &serializer, NULL), ASTER_OK);
    assert_int_equal(acquire_now(serializer, "r", "a"), 1);
    struct asked waiter; /* so that the thread that wakes waiters exists */
    ask(serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    expect_child_succeeds(serializer);
    assert_int_equal(decide_now(serializer, op_renew("r", "a", 1), NULL), ASTER_REASON_NONE);
    assert_int_equal(waiter.answers, 0);
    assert_int_equal(decide_now(serializer, op_release("r", "a", 1), NULL), ASTER_REASON_NONE);
    assert_true(asked_granted(&waiter));
    asked_fini(&waiter);
    aster_serializer_destroy(serializer);
}

static aster_status fork_inside(void *tx, void *user)
{
    (void)tx;
    expect_child_succeeds(user);
    return ASTER_OK;
}

static void a_child_forked_while_a_lock_is_held_does_not_hang_on_it(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    assert_int_equal(aster_memory_open(NULL, &serializer, NULL), ASTER_OK);
    assert_int_equal(acquire_now(serializer, "r", "a"), 1);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    assert_int_equal(aster_mutate_fenced(serializer, &fence, fence.holder, fork_inside, serializer, &verdict, NULL),
                     ASTER_OK);
    assert_int_equal(verdict.reason, ASTER_REASON_NONE);
    aster_serializer_destroy(serializer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_is_refused_and_the_parents_lease_is_unchanged),
        cmocka_unit_test(a_child_forked_while_a_lock_is_held_does_not_hang_on_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
