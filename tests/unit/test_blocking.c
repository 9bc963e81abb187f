/* Blocking functions behind a serializer, and blocking calls in front of one: every answer comes, and comes once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "aster/sys/serializer.h"
#include "support/fake_clock.h"
#include "support/requests.h"

/* A function that stops at a gate, so that a test decides what waits behind it. */
struct gated {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    int entered;
    int destroyed;
    unsigned char last_id[ASTER_REQUEST_ID_SIZE];
};

static aster_status decide_behind_gate(void *user, const struct aster_operation *operation, struct aster_reply *reply,
                                       struct aster_error *error)
{
    (void)error;
    struct gated *gated = user;
    pthread_mutex_lock(&gated->mutex);
    gated->entered++;
    memcpy(gated->last_id, operation->request_id, sizeof gated->last_id);
    pthread_cond_broadcast(&gated->changed);
    while (!gated->open) {
        pthread_cond_wait(&gated->changed, &gated->mutex);
    }
    pthread_mutex_unlock(&gated->mutex);
    struct aster_decision decision = {.struct_size = sizeof decision, .kind = operation->kind, .epoch = 1};
    decision.outcome = ASTER_GRANTED;
    decision.snapshot.resource = operation->resource;
    return aster_reply_set(reply, &decision);
}

static void open_gate(struct gated *gated)
{
    pthread_mutex_lock(&gated->mutex);
    gated->open = true;
    pthread_cond_broadcast(&gated->changed);
    pthread_mutex_unlock(&gated->mutex);
}

static void wait_entered(struct gated *gated, int count)
{
    pthread_mutex_lock(&gated->mutex);
    while (gated->entered < count) {
        pthread_cond_wait(&gated->changed, &gated->mutex);
    }
    pthread_mutex_unlock(&gated->mutex);
}

static void note_destroyed(void *user)
{
    struct gated *gated = user;
    gated->destroyed++;
}

static struct aster_serializer *open_gated(struct gated *gated, bool is_open, size_t queue_max,
                                           const struct aster_clock *clock)
{
    *gated = (struct gated){.open = is_open};
    pthread_mutex_init(&gated->mutex, NULL);
    pthread_cond_init(&gated->changed, NULL);
    struct aster_blocking_options options = ASTER_BLOCKING_OPTIONS_INIT;
    struct aster_serializer *serializer = NULL;
    options.queue_max = queue_max;
    options.clock = clock;
    options.destroy = note_destroyed;
    assert_int_equal(aster_blocking_serializer_create(decide_behind_gate, gated, &options, &serializer, NULL),
                     ASTER_OK);
    return serializer;
}

static void close_gated(struct gated *gated, struct aster_serializer *serializer)
{
    aster_serializer_destroy(serializer);
    assert_int_equal(gated->destroyed, 1);
    pthread_mutex_destroy(&gated->mutex);
    pthread_cond_destroy(&gated->changed);
}

static void a_full_queue_refuses_with_the_limits_name(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, false, 2, NULL);
    struct asked asked[4];
    ask(serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    wait_entered(&gated, 1);
    for (int i = 1; i < 4; i++) {
        ask(serializer, &asked[i], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    }
    assert_int_equal(asked[3].answers, 1);
    assert_int_equal(asked[3].status, ASTER_ERR_LIMIT);
    assert_non_null(strstr(asked[3].message, "queue_max"));
    open_gate(&gated);
    close_gated(&gated, serializer);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(asked[i].answers, 1);
        asked_fini(&asked[i]);
    }
}

static void what_waits_in_the_queue_past_its_deadline_is_never_run(void **state)
{
    (void)state;
    struct gated gated;
    struct fake_clock *clock = fake_clock_create();
    struct aster_serializer *serializer = open_gated(&gated, false, 16, fake_clock_clock(clock));
    struct asked first;
    struct asked late = {.request = ASTER_REQUEST_INIT};
    ask(serializer, &first, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    wait_entered(&gated, 1);
    late.request.operation = op_acquire("r", "b", REQUEST_TTL_MS);
    late.request.complete = first.request.complete;
    late.request.user = &late;
    late.request.deadline_ns = fake_clock_now_ns(clock) + 1000000;
    aster_serializer_submit(serializer, &late.request);
    fake_clock_advance_ms(clock, 2);
    open_gate(&gated);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(serializer, aster_text("behind"), &reply, NULL), ASTER_OK);
    aster_reply_fini(&reply);
    assert_int_equal(gated.entered, 2); /* first, and the inspect */
    close_gated(&gated, serializer);
    assert_int_equal(late.answers, 1);
    assert_int_equal(late.status, ASTER_ERR_TIMEOUT);
    asked_fini(&first);
    fake_clock_destroy(clock);
}

static void cancel_takes_a_request_out_of_the_queue_and_nothing_else(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, false, 16, NULL);
    struct asked asked[4];
    ask(serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    wait_entered(&gated, 1);
    for (int i = 1; i < 4; i++) {
        ask(serializer, &asked[i], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    }
    aster_serializer_cancel(serializer, &asked[0].request); /* being decided: no effect */
    aster_serializer_cancel(serializer, &asked[3].request); /* the last of the queue */
    aster_serializer_cancel(serializer, &asked[1].request);
    aster_serializer_cancel(serializer, &asked[1].request);
    assert_int_equal(asked[3].status, ASTER_ERR_CANCELLED);
    assert_int_equal(asked[1].status, ASTER_ERR_CANCELLED);
    struct asked after;
    ask(serializer, &after, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    open_gate(&gated);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(serializer, aster_text("behind"), &reply, NULL), ASTER_OK);
    aster_reply_fini(&reply);
    close_gated(&gated, serializer);
    assert_true(asked_granted(&asked[0]) && asked_granted(&asked[2]) && asked_granted(&after));
    assert_int_equal(asked[1].answers, 1);
    asked_fini(&asked[0]);
    asked_fini(&asked[2]);
    asked_fini(&after);
}

static void close_answers_what_waits_and_lets_what_runs_finish(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, false, 16, NULL);
    struct asked asked[3];
    ask(serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    wait_entered(&gated, 1);
    ask(serializer, &asked[1], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    aster_serializer_close(serializer);
    assert_int_equal(asked[1].status, ASTER_ERR_CLOSED);
    ask(serializer, &asked[2], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(asked[2].status, ASTER_ERR_CLOSED);
    open_gate(&gated);
    close_gated(&gated, serializer);
    assert_true(asked_granted(&asked[0]));
    asked_fini(&asked[0]);
}

static void a_call_that_is_being_decided_past_its_timeout_is_indeterminate_and_its_late_answer_harmless(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, false, 16, NULL);
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    const struct aster_operation operation = op_acquire("r", "a", REQUEST_TTL_MS);
    assert_int_equal(aster_serializer_call(serializer, &operation, 20, &reply, &error), ASTER_ERR_INDETERMINATE);
    assert_non_null(strstr(error.message, "same id"));
    assert_null(reply.storage);
    open_gate(&gated); /* the answer comes now, to nobody */
    close_gated(&gated, serializer);
}

static void a_call_that_still_waits_at_its_timeout_is_withdrawn(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, false, 16, NULL);
    struct asked first;
    ask(serializer, &first, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    wait_entered(&gated, 1);
    struct aster_reply reply = ASTER_REPLY_INIT;
    const struct aster_operation operation = op_acquire("r", "b", REQUEST_TTL_MS);
    assert_int_equal(aster_serializer_call(serializer, &operation, 20, &reply, NULL), ASTER_ERR_TIMEOUT);
    open_gate(&gated);
    assert_int_equal(aster_inspect(serializer, aster_text("behind"), &reply, NULL), ASTER_OK);
    assert_int_equal(gated.entered, 2);
    aster_reply_fini(&reply);
    close_gated(&gated, serializer);
    asked_fini(&first);
}

static void a_call_gives_every_mutation_an_id_of_its_own_and_keeps_a_given_one(void **state)
{
    (void)state;
    static const unsigned char none[ASTER_REQUEST_ID_SIZE];
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, true, 16, NULL);
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = op_acquire("r", "a", REQUEST_TTL_MS);
    unsigned char first[ASTER_REQUEST_ID_SIZE];
    assert_int_equal(aster_serializer_call(serializer, &operation, 0, &reply, NULL), ASTER_OK);
    memcpy(first, gated.last_id, sizeof first);
    assert_memory_not_equal(first, none, sizeof none);
    assert_memory_equal(operation.request_id, none, sizeof none);
    assert_int_equal(aster_serializer_call(serializer, &operation, 0, &reply, NULL), ASTER_OK);
    assert_memory_not_equal(first, gated.last_id, sizeof first);
    memset(operation.request_id, 7, sizeof operation.request_id);
    assert_int_equal(aster_serializer_call(serializer, &operation, 0, &reply, NULL), ASTER_OK);
    assert_memory_equal(gated.last_id, operation.request_id, sizeof first);
    assert_int_equal(aster_serializer_call(serializer, &operation, -1, &reply, NULL), ASTER_ERR_INVALID);
    aster_reply_fini(&reply);
    close_gated(&gated, serializer);
}

static void references_keep_a_serializer_alive_whatever_is_destroyed_first(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, true, 16, NULL);
    struct aster_serializer *mine = aster_serializer_ref(serializer);
    aster_serializer_destroy(serializer);
    assert_int_equal(gated.destroyed, 0);
    struct asked asked;
    ask(mine, &asked, op_inspect("r"), 0);
    assert_int_equal(asked.status, ASTER_ERR_CLOSED);
    assert_string_equal(aster_serializer_name(mine), "app");
    aster_serializer_unref(mine);
    aster_serializer_unref(NULL);
    aster_serializer_destroy(NULL);
    assert_int_equal(gated.destroyed, 1);
}

static void optional_slots_that_are_missing_are_unsupported(void **state)
{
    (void)state;
    struct gated gated;
    struct aster_serializer *serializer = open_gated(&gated, true, 16, NULL);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    assert_int_equal(aster_mutate_fenced(serializer, &fence, fence.holder, NULL, NULL, &verdict, NULL),
                     ASTER_ERR_UNSUPPORTED);
    assert_int_equal(aster_list(serializer, aster_text(""), NULL, NULL, NULL), ASTER_ERR_UNSUPPORTED);
    assert_int_equal(aster_history(serializer, NULL, NULL, NULL, NULL), ASTER_ERR_UNSUPPORTED);
    close_gated(&gated, serializer);
}

static void a_vtable_that_lacks_a_slot_is_refused_by_the_slots_name(void **state)
{
    (void)state;
    struct aster_serializer_ops ops = {.struct_size = offsetof(struct aster_serializer_ops, submit), .name = "half"};
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_serializer_create(&ops, NULL, NULL, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "submit"));
    assert_null(serializer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_refuses_with_the_limits_name),
        cmocka_unit_test(what_waits_in_the_queue_past_its_deadline_is_never_run),
        cmocka_unit_test(cancel_takes_a_request_out_of_the_queue_and_nothing_else),
        cmocka_unit_test(close_answers_what_waits_and_lets_what_runs_finish),
        cmocka_unit_test(a_call_that_is_being_decided_past_its_timeout_is_indeterminate_and_its_late_answer_harmless),
        cmocka_unit_test(a_call_that_still_waits_at_its_timeout_is_withdrawn),
        cmocka_unit_test(a_call_gives_every_mutation_an_id_of_its_own_and_keeps_a_given_one),
        cmocka_unit_test(references_keep_a_serializer_alive_whatever_is_destroyed_first),
        cmocka_unit_test(optional_slots_that_are_missing_are_unsupported),
        cmocka_unit_test(a_vtable_that_lacks_a_slot_is_refused_by_the_slots_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
