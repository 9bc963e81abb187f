/* A closure that blocks keeps its own stripe, and nobody else: whoever must not block is not blocked by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "aster/aster.h"
#include "aster/sys/serializer.h"

#define LEASES 200

struct blocked {
    struct aster_serializer *serializer;
    struct aster_fence fence;
    sem_t inside;
    sem_t go_on;
    pthread_t thread;
    enum aster_reason reason;
};

static aster_status block(void *tx, void *user)
{
    (void)tx;
    struct blocked *blocked = user;
    sem_post(&blocked->inside);
    sem_wait(&blocked->go_on);
    return ASTER_OK;
}

static void *write_slowly(void *user)
{
    struct blocked *blocked = user;
    struct aster_verdict verdict = {ASTER_REASON_NO_FENCE, 0, 0};
    aster_mutate_fenced(blocked->serializer, &blocked->fence, blocked->fence.holder, block, blocked, &verdict, NULL);
    blocked->reason = verdict.reason;
    return NULL;
}

/* Held by A at epoch 1, with a write of A under way that does not end before unblock(). */
static void open_blocked(struct blocked *blocked, size_t stripes)
{
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.stripes = stripes;
    assert_int_equal(aster_memory_open(&options, &blocked->serializer, NULL), ASTER_OK);
    struct aster_operation acquire = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    acquire.kind = ASTER_OP_ACQUIRE;
    acquire.resource = aster_text("slow");
    acquire.caller = aster_text("A");
    acquire.ttl_ms = 60000;
    assert_int_equal(aster_serializer_call(blocked->serializer, &acquire, 0, &reply, NULL), ASTER_OK);
    aster_reply_fini(&reply);
    blocked->fence = (struct aster_fence){aster_text("slow"), 1, aster_text("A")};
    sem_init(&blocked->inside, 0, 0);
    sem_init(&blocked->go_on, 0, 0);
    assert_int_equal(pthread_create(&blocked->thread, NULL, write_slowly, blocked), 0);
    sem_wait(&blocked->inside);
}

static void unblock(struct blocked *blocked)
{
    sem_post(&blocked->go_on);
    pthread_join(blocked->thread, NULL);
    assert_int_equal(blocked->reason, ASTER_REASON_NONE);
}

static void close_blocked(struct blocked *blocked)
{
    aster_serializer_destroy(blocked->serializer);
    sem_destroy(&blocked->inside);
    sem_destroy(&blocked->go_on);
}

struct answered {
    struct aster_request request;
    _Atomic(int) count;
    aster_status status;
    enum aster_outcome outcome;
    int64_t epoch;
    int order;
};

static _Atomic(int) answers;

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    (void)error;
    struct answered *answered = request->user;
    answered->status = status;
    answered->outcome = decision != NULL ? decision->outcome : ASTER_DENIED;
    answered->epoch = decision != NULL ? decision->epoch : -1;
    answered->order = atomic_fetch_add(&answers, 1);
    atomic_fetch_add(&answered->count, 1);
}

/* Waiters may also be answered by the serializer's own thread, a moment after the closure has returned. */
static void await_answer(struct answered *answered)
{
    const struct timespec pause = {0, 1000000};
    for (int left = 10000; left > 0 && atomic_load(&answered->count) == 0; left--) {
        nanosleep(&pause, NULL);
    }
    assert_int_equal(atomic_load(&answered->count), 1);
}

static void prepare(struct answered *answered, enum aster_operation_kind kind, const char *caller)
{
    *answered = (struct answered){.request = ASTER_REQUEST_INIT};
    answered->request.operation.kind = kind;
    answered->request.operation.resource = aster_text("slow");
    answered->request.operation.caller = aster_text(caller);
    answered->request.operation.epoch = kind == ASTER_OP_ACQUIRE ? 0 : 1;
    answered->request.operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 60000 : 0;
    answered->request.complete = complete;
    answered->request.user = answered;
}

static void requests_for_a_blocked_stripe_are_taken_at_once_and_answered_in_order_afterwards(void **state)
{
    (void)state;
    struct blocked blocked = {0};
    struct answered renew;
    struct answered release;
    struct answered acquire;
    open_blocked(&blocked, 1);
    prepare(&renew, ASTER_OP_RENEW, "A");
    prepare(&release, ASTER_OP_RELEASE, "A");
    prepare(&acquire, ASTER_OP_ACQUIRE, "B");
    aster_serializer_submit(blocked.serializer, &renew.request); /* would hang here for ever if it waited */
    aster_serializer_submit(blocked.serializer, &release.request);
    aster_serializer_submit(blocked.serializer, &acquire.request);
    assert_int_equal(renew.count + release.count + acquire.count, 0);
    unblock(&blocked);
    assert_int_equal(renew.count + release.count + acquire.count, 3);
    assert_int_equal(renew.outcome, ASTER_GRANTED);
    assert_int_equal(release.outcome, ASTER_GRANTED);
    assert_int_equal(acquire.outcome, ASTER_GRANTED);
    assert_int_equal(acquire.epoch, 3);
    assert_true(renew.order < release.order && release.order < acquire.order);
    close_blocked(&blocked);
}

static void a_request_whose_deadline_passes_behind_a_closure_is_not_applied(void **state)
{
    (void)state;
    struct blocked blocked = {0};
    struct answered release;
    open_blocked(&blocked, 1);
    prepare(&release, ASTER_OP_RELEASE, "A");
    release.request.deadline_ns = aster_clock_now_ns(aster_clock_system()) + 1;
    aster_serializer_submit(blocked.serializer, &release.request);
    unblock(&blocked);
    assert_int_equal(release.count, 1);
    assert_int_equal(release.status, ASTER_ERR_TIMEOUT);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(blocked.serializer, aster_text("slow"), &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.snapshot.epoch, 1);
    aster_reply_fini(&reply);
    close_blocked(&blocked);
}

static void cancel_and_close_do_not_wait_for_a_closure(void **state)
{
    (void)state;
    struct blocked blocked = {0};
    struct answered first;
    struct answered second;
    open_blocked(&blocked, 1);
    prepare(&first, ASTER_OP_ACQUIRE, "B");
    prepare(&second, ASTER_OP_ACQUIRE, "C");
    first.request.wait_until_ns = second.request.wait_until_ns = INT64_MAX;
    aster_serializer_submit(blocked.serializer, &first.request);
    aster_serializer_submit(blocked.serializer, &second.request);
    aster_serializer_cancel(blocked.serializer, &first.request);
    unblock(&blocked);
    await_answer(&first);
    assert_int_equal(first.status, ASTER_ERR_CANCELLED);
    assert_int_equal(second.count, 0);
    assert_int_equal(pthread_create(&blocked.thread, NULL, write_slowly, &blocked), 0);
    sem_wait(&blocked.inside);
    aster_serializer_close(blocked.serializer);
    unblock(&blocked);
    await_answer(&second);
    assert_int_equal(second.status, ASTER_ERR_CLOSED);
    close_blocked(&blocked);
}

/* The one renewing thread serves every lease: those of other stripes must not miss their limit. */
static void leases_of_other_stripes_are_renewed_while_a_closure_blocks(void **state)
{
    (void)state;
    struct blocked blocked = {0};
    static struct aster_lease *leases[LEASES];
    open_blocked(&blocked, 64);
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 1500;
    for (int i = 0; i < LEASES; i++) {
        char name[32];
        snprintf(name, sizeof name, "lease/%d", i);
        assert_int_equal(
            aster_lease_start(blocked.serializer, aster_text(name), aster_text("A"), &options, &leases[i], NULL),
            ASTER_OK);
    }
    nanosleep(&(struct timespec){4, 0}, NULL); /* almost three ttl */
    int held = 0;
    for (int i = 0; i < LEASES; i++) {
        held += aster_lease_fence(leases[i]) != NULL;
    }
    unblock(&blocked);
    for (int i = 0; i < LEASES; i++) {
        aster_lease_destroy(leases[i]);
    }
    /* About 200/64 names share the closure's stripe by chance. */
    assert_in_range(held, LEASES * 8 / 10, LEASES);
    close_blocked(&blocked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_for_a_blocked_stripe_are_taken_at_once_and_answered_in_order_afterwards),
        cmocka_unit_test(a_request_whose_deadline_passes_behind_a_closure_is_not_applied),
        cmocka_unit_test(cancel_and_close_do_not_wait_for_a_closure),
        cmocka_unit_test(leases_of_other_stripes_are_renewed_while_a_closure_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
