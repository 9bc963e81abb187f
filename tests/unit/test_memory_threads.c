/* Threads on the real clock: one holder at a time, no accepted write lost, waiters woken, cancels raced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "aster/memory.h"
#include "support/requests.h"

#define WRITERS 5
#define APPENDS 200
#define LIST_MAX (WRITERS * APPENDS * 2)

/* One list that five threads read, think about, and write back, as five processes would do with a file. */
struct shared {
    struct aster_serializer *serializer;
    bool checked;          /* write through the fence check, or without it */
    pthread_mutex_t mutex; /* of the control run: each write alone is atomic, read-modify-write is not */
    int list[LIST_MAX];
    int length;
    _Atomic(int) acknowledged;
    _Atomic(int) next_id;
};

struct draft {
    struct shared *shared;
    int length; /* as it was read */
    int value;
};

static aster_status write_back(void *tx, void *user)
{
    (void)tx;
    const struct draft *draft = user;
    draft->shared->list[draft->length] = draft->value;
    draft->shared->length = draft->length + 1;
    return ASTER_OK;
}

static aster_status read_length(void *tx, void *user)
{
    (void)tx;
    struct draft *draft = user;
    draft->length = draft->shared->length;
    return ASTER_OK;
}

/* Run a step under the fence check, or as those do it who trust their lock. */
static bool step(struct shared *shared, const struct aster_fence *fence, aster_mutation mutation, struct draft *draft)
{
    if (shared->checked) {
        struct aster_verdict verdict = ASTER_VERDICT_INIT;
        aster_status status =
            aster_mutate_fenced(shared->serializer, fence, fence->holder, mutation, draft, &verdict, NULL);
        return status == ASTER_OK && verdict.reason == ASTER_REASON_NONE;
    }
    pthread_mutex_lock(&shared->mutex);
    mutation(NULL, draft);
    pthread_mutex_unlock(&shared->mutex);
    return true;
}

static void pause_us(long us)
{
    const struct timespec pause = {0, us * 1000};
    nanosleep(&pause, NULL);
}

static void *append_with_pauses(void *user)
{
    struct shared *shared = user;
    int id = atomic_fetch_add(&shared->next_id, 1);
    char name[16];
    snprintf(name, sizeof name, "w%d", id);
    struct aster_reply reply = ASTER_REPLY_INIT;
    for (int i = 0; i < APPENDS; i++) {
        const struct aster_operation acquire = op_acquire("list", name, 60000);
        if (aster_serializer_call(shared->serializer, &acquire, 0, &reply, NULL) != ASTER_OK ||
            reply.decision.outcome != ASTER_GRANTED) {
            /* Impatient: end whatever holds it. The victim does not know, and goes on. */
            const struct aster_operation revoke = op_revoke("list", "operator");
            aster_serializer_call(shared->serializer, &revoke, 0, &reply, NULL);
            continue;
        }
        const struct aster_fence fence = {aster_text("list"), reply.decision.epoch, aster_text(name)};
        struct draft draft = {shared, 0, id * APPENDS + i};
        bool done = step(shared, &fence, read_length, &draft);
        pause_us(50 + i % 7 * 20);
        if (done && step(shared, &fence, write_back, &draft)) {
            atomic_fetch_add(&shared->acknowledged, 1);
        }
        const struct aster_operation release = op_release("list", name, fence.epoch);
        aster_serializer_call(shared->serializer, &release, 0, &reply, NULL);
    }
    aster_reply_fini(&reply);
    return NULL;
}

/* How many acknowledged appends are missing from the list. */
static int lost_updates(bool checked)
{
    struct shared *shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    shared->checked = checked;
    pthread_mutex_init(&shared->mutex, NULL);
    assert_int_equal(aster_memory_open(NULL, &shared->serializer, NULL), ASTER_OK);
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, append_with_pauses, shared), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    int acknowledged = atomic_load(&shared->acknowledged);
    int lost = acknowledged - shared->length;
    assert_true(acknowledged > 0);
    aster_serializer_destroy(shared->serializer);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
    return lost;
}

static void with_the_fence_check_no_update_is_lost(void **state)
{
    (void)state;
    assert_int_equal(lost_updates(true), 0);
}

static void without_the_fence_check_updates_are_lost(void **state)
{
    (void)state;
    int lost = lost_updates(false);
    printf("control run without the fence check: %d updates lost\n", lost);
    assert_true(lost > 0);
}

/* Threads that queue for one resource: at most one inside at any time. */
struct queue_test {
    struct aster_serializer *serializer;
    _Atomic(int) inside;
    _Atomic(int) most_inside;
    _Atomic(int) grants;
    _Atomic(int) next_id;
};

struct answer_slot {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool answered;
    aster_status status;
    int64_t epoch;
    bool granted;
};

/* cmocka's own assertions belong to the thread that runs the test. */
static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void fill_slot(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                      const struct aster_error *error)
{
    (void)error;
    struct answer_slot *slot = request->user;
    pthread_mutex_lock(&slot->mutex);
    must(!slot->answered);
    slot->answered = true;
    slot->status = status;
    slot->granted = decision != NULL && decision->outcome == ASTER_GRANTED;
    slot->epoch = decision != NULL ? decision->epoch : 0;
    pthread_cond_signal(&slot->changed);
    pthread_mutex_unlock(&slot->mutex);
}

static void wait_in_line(struct aster_serializer *serializer, const char *name, int64_t wait_ms, bool cancel,
                         struct answer_slot *slot)
{
    struct aster_request request = ASTER_REQUEST_INIT;
    slot->answered = false;
    request.operation = op_acquire("r", name, 60000);
    request.complete = fill_slot;
    request.user = slot;
    request.wait_until_ns = aster_clock_now_ns(aster_clock_system()) + wait_ms * 1000000;
    aster_serializer_submit(serializer, &request);
    if (cancel) {
        aster_serializer_cancel(serializer, &request);
    }
    pthread_mutex_lock(&slot->mutex);
    while (!slot->answered) {
        pthread_cond_wait(&slot->changed, &slot->mutex);
    }
    pthread_mutex_unlock(&slot->mutex);
}

static void *take_turns(void *user)
{
    struct queue_test *test = user;
    int id = atomic_fetch_add(&test->next_id, 1);
    char name[16];
    snprintf(name, sizeof name, "t%d", id);
    struct answer_slot slot = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    for (int i = 0; i < 200; i++) {
        bool cancel = (i + id) % 4 == 0;
        wait_in_line(test->serializer, name, 60000, cancel, &slot);
        must(slot.granted || (cancel && slot.status == ASTER_ERR_CANCELLED));
        if (!slot.granted) {
            continue;
        }
        int now_inside = atomic_fetch_add(&test->inside, 1) + 1;
        if (now_inside > atomic_load(&test->most_inside)) {
            atomic_store(&test->most_inside, now_inside);
        }
        atomic_fetch_add(&test->grants, 1);
        atomic_fetch_sub(&test->inside, 1);
        struct aster_reply reply = ASTER_REPLY_INIT;
        const struct aster_operation release = op_release("r", name, slot.epoch);
        must(aster_serializer_call(test->serializer, &release, 0, &reply, NULL) == ASTER_OK);
        must(reply.decision.outcome == ASTER_GRANTED);
        aster_reply_fini(&reply);
    }
    return NULL;
}

static void threads_that_wait_and_cancel_are_inside_one_at_a_time(void **state)
{
    (void)state;
    struct queue_test test = {0};
    assert_int_equal(aster_memory_open(NULL, &test.serializer, NULL), ASTER_OK);
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &test), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(test.most_inside, 1);
    assert_true(test.grants >= 6 * 150);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(test.serializer, aster_text("r"), &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.epoch, 2 * test.grants);
    aster_reply_fini(&reply);
    aster_serializer_destroy(test.serializer);
}

static void on_the_real_clock_a_waiter_takes_over_soon_after_expiry(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    assert_int_equal(aster_memory_open(NULL, &serializer, NULL), ASTER_OK);
    assert_int_equal(decide_now(serializer, op_acquire("r", "dead", 300), NULL), ASTER_REASON_NONE);
    struct answer_slot slot = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int64_t start_ns = aster_clock_now_ns(aster_clock_system());
    wait_in_line(serializer, "b", 20000, false, &slot);
    int64_t took_ms = (aster_clock_now_ns(aster_clock_system()) - start_ns) / 1000000;
    assert_true(slot.granted);
    assert_int_equal(slot.epoch, 2);
    assert_true(took_ms >= 290 && took_ms < 5000);
    aster_serializer_destroy(serializer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_the_fence_check_no_update_is_lost),
        cmocka_unit_test(without_the_fence_check_updates_are_lost),
        cmocka_unit_test(threads_that_wait_and_cancel_are_inside_one_at_a_time),
        cmocka_unit_test(on_the_real_clock_a_waiter_takes_over_soon_after_expiry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
