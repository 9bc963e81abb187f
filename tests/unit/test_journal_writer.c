/* The journal's thread: one append for what gathers, one answer for each, and life with a journal that fails. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "journal/journalled.h"
#include "platform/files.h"
#include "support/fake_journal.h"
#include "support/requests.h"
#include "support/unit.h"

enum { MANY = 60, THREADS = 4, ROUNDS = 400 };

struct fixture {
    struct fake_store store;
    struct aster_serializer *serializer;
    _Atomic(int) begins; /* of answering */
    _Atomic(int) ends;
    _Atomic(int) told_failing;
    _Atomic(int) told_working;
};

static void answering(bool begin, void *user)
{
    struct fixture *fixture = user;
    atomic_fetch_add(begin ? &fixture->begins : &fixture->ends, 1);
}

static void failing(aster_status status, const struct aster_error *error, void *user)
{
    struct fixture *fixture = user;
    (void)error;
    atomic_fetch_add(status != ASTER_OK ? &fixture->told_failing : &fixture->told_working, 1);
}

static void open_again(struct fixture *fixture, bool stepped)
{
    struct aster_journalled_options options = ASTER_JOURNALLED_OPTIONS_INIT;
    const struct aster_journal journal = fake_journal(&fixture->store);
    options.memory.stripes = 16; /* ThreadSanitizer counts no more than 64 locks at once */
    options.answering = answering;
    options.failing = failing;
    options.user = fixture;
    options.stepped = stepped;
    assert_int_equal(aster_journalled_open(&options, &journal, &fixture->serializer, NULL), ASTER_OK);
}

static void set_up(struct fixture *fixture, bool stepped)
{
    *fixture = (struct fixture){.begins = 0};
    fake_store_init(&fixture->store);
    open_again(fixture, stepped);
}

static void tear_down(struct fixture *fixture)
{
    aster_serializer_destroy(fixture->serializer);
    fake_store_fini(&fixture->store);
}

static void fail_from_now_on(struct fixture *fixture, enum fake_append outcome)
{
    pthread_mutex_lock(&fixture->store.lock);
    fixture->store.next = outcome;
    pthread_mutex_unlock(&fixture->store.lock);
}

static aster_status call(struct fixture *fixture, struct aster_operation operation, struct aster_error *error)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_status status = aster_serializer_call(fixture->serializer, &operation, 0, &reply, error);
    if (status == ASTER_OK) {
        assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    }
    aster_reply_fini(&reply);
    return status;
}

static void what_was_submitted_together_is_one_append_and_answered_together(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    static char names[MANY][16];
    static struct asked asked[MANY];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "r%zu", i);
        ask(fixture.serializer, &asked[i], op_acquire(names[i], "a", REQUEST_TTL_MS), 0);
        assert_int_equal(asked[i].answers, 0);
    }
    assert_int_equal(aster_journalled_counts(fixture.serializer).waiting, MANY);
    assert_true(aster_journalled_step(fixture.serializer));
    assert_false(aster_journalled_step(fixture.serializer));
    assert_int_equal(fixture.store.appends, 1);
    assert_int_equal(fixture.begins, 1);
    assert_int_equal(fixture.ends, 1);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(asked_granted(&asked[i]));
        asked_fini(&asked[i]);
    }
    const struct aster_journalled_counts counts = aster_journalled_counts(fixture.serializer);
    assert_int_equal(counts.batches, 1);
    assert_int_equal(counts.changes, MANY);
    assert_int_equal(counts.waiting, 0);
    tear_down(&fixture);
}

static void a_thousand_renewals_do_not_reach_the_journal(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, false);
    assert_int_equal(call(&fixture, op_acquire("r", "a", REQUEST_TTL_MS), NULL), ASTER_OK);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(call(&fixture, op_renew("r", "a", 1), NULL), ASTER_OK);
    }
    assert_int_equal(fixture.store.appends, 1);
    tear_down(&fixture);
}

static void changes_larger_than_an_entry_are_several_entries(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    static char value[60000];
    static char names[40][16];
    static struct asked asked[40];
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "r%zu", i);
        ask(fixture.serializer, &asked[i], op_acquire(names[i], "a", REQUEST_TTL_MS), 0);
    }
    assert_true(aster_journalled_step(fixture.serializer));
    for (size_t i = 0; i < 40; i++) {
        struct aster_operation put = op_renew(names[i], "a", 1);
        asked_fini(&asked[i]);
        put.kind = ASTER_OP_PUT;
        put.holder = put.caller;
        put.value = (struct aster_bytes){value, sizeof value};
        ask(fixture.serializer, &asked[i], put, 0);
    }
    while (aster_journalled_step(fixture.serializer)) {
    }
    assert_true(fixture.store.count >= 3);
    for (size_t i = 0; i < 40; i++) {
        assert_true(asked_granted(&asked[i]));
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

static void a_full_disk_refuses_grants_with_the_reason_and_renewals_go_on(void **state)
{
    (void)state;
    struct fixture fixture;
    struct aster_error error = ASTER_ERROR_INIT;
    set_up(&fixture, false);
    assert_int_equal(call(&fixture, op_acquire("r", "a", REQUEST_TTL_MS), NULL), ASTER_OK);
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(&fixture, op_acquire("s", "b", REQUEST_TTL_MS), &error), ASTER_ERR_IO);
        assert_non_null(strstr(error.message, "the fake disk is full"));
        assert_non_null(strstr(error.message, "nothing was applied"));
        assert_int_equal(call(&fixture, op_renew("r", "a", 1), NULL), ASTER_OK);
    }
    assert_int_equal(call(&fixture, op_release("r", "a", 1), NULL), ASTER_ERR_IO);
    assert_int_equal(call(&fixture, op_renew("r", "a", 1), NULL), ASTER_OK);
    assert_int_equal(fixture.told_failing, 1);
    assert_true(aster_journalled_counts(fixture.serializer).failing);
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    assert_int_equal(call(&fixture, op_acquire("s", "b", REQUEST_TTL_MS), NULL), ASTER_OK);
    assert_int_equal(fixture.told_working, 1);
    const struct aster_journalled_counts counts = aster_journalled_counts(fixture.serializer);
    assert_int_equal(counts.failures, 4);
    assert_int_equal(counts.undone, 4);
    assert_false(counts.failing);
    tear_down(&fixture);
}

static void epochs_do_not_rise_while_a_hundred_thousand_acquires_fail(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    for (int i = 0; i < 100000; i++) {
        struct asked asked;
        ask(fixture.serializer, &asked, op_acquire("r", "a", REQUEST_TTL_MS), 0);
        aster_journalled_step(fixture.serializer);
        assert_int_equal(asked.status, ASTER_ERR_IO);
        asked_fini(&asked);
    }
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    struct asked asked;
    ask(fixture.serializer, &asked, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    aster_journalled_step(fixture.serializer);
    assert_int_equal(asked.reply.decision.epoch, 1);
    asked_fini(&asked);
    tear_down(&fixture);
}

static bool count_event(const struct aster_event *event, void *user)
{
    int *counts = user;
    counts[event->kind]++;
    return true;
}

static void a_refusal_that_could_not_be_written_down_is_written_down_later(void **state)
{
    (void)state;
    struct fixture fixture;
    int counts[9] = {0};
    set_up(&fixture, true);
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    struct aster_operation put = op_renew("r", "a", 7);
    put.kind = ASTER_OP_PUT;
    put.holder = put.caller;
    struct asked asked;
    ask(fixture.serializer, &asked, put, 0);
    assert_int_equal(asked.reply.decision.reason, ASTER_REASON_FUTURE_EPOCH);
    asked_fini(&asked);
    assert_true(aster_journalled_step(fixture.serializer));
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED], 0);
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    assert_true(aster_journalled_step(fixture.serializer));
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED], 1);
    aster_serializer_destroy(fixture.serializer);
    open_again(&fixture, true); /* and it is there after a restart */
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED], 2);
    tear_down(&fixture);
}

static bool count_row(const struct aster_snapshot *snapshot, void *user)
{
    int *held = user;
    *held += snapshot->held;
    return true;
}

static void a_list_shows_what_is_durable(void **state)
{
    (void)state;
    struct fixture fixture;
    int held = 0;
    set_up(&fixture, true);
    struct asked asked;
    ask(fixture.serializer, &asked, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    const struct aster_bytes all = {NULL, 0};
    assert_int_equal(aster_list(fixture.serializer, all, count_row, &held, NULL), ASTER_OK);
    assert_int_equal(asked.status, ASTER_ERR_IO);
    assert_int_equal(held, 0);
    asked_fini(&asked);
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    ask(fixture.serializer, &asked, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(aster_list(fixture.serializer, all, count_row, &held, NULL), ASTER_OK);
    assert_true(asked_granted(&asked));
    assert_int_equal(held, 1);
    asked_fini(&asked);
    tear_down(&fixture);
}

static void closing_waits_for_what_is_under_way(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, false);
    struct asked asked[MANY];
    static char names[MANY][16];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "r%zu", i);
        ask(fixture.serializer, &asked[i], op_acquire(names[i], "a", REQUEST_TTL_MS), 0);
    }
    aster_serializer_destroy(fixture.serializer);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(asked_granted(&asked[i]));
        asked_fini(&asked[i]);
    }
    open_again(&fixture, false);
    assert_int_equal(aster_journalled_counts(fixture.serializer).rows_loaded, MANY);
    tear_down(&fixture);
}

struct crowd {
    struct fixture *fixture;
    const char *name;
    int granted;
};

/* Acquire and release one resource in turns with the others, whatever the disk does. */
static void *take_turns(void *user)
{
    struct crowd *crowd = user;
    for (int i = 0; i < ROUNDS; i++) {
        struct aster_reply reply = ASTER_REPLY_INIT;
        struct aster_operation acquire = op_acquire("shared", crowd->name, REQUEST_TTL_MS);
        aster_status status = aster_serializer_call(crowd->fixture->serializer, &acquire, 0, &reply, NULL);
        int64_t epoch = reply.decision.epoch;
        bool granted = status == ASTER_OK && reply.decision.outcome == ASTER_GRANTED;
        crowd->granted += granted;
        aster_reply_fini(&reply);
        while (granted) {
            struct aster_operation release = op_release("shared", crowd->name, epoch);
            memset(release.request_id, 1 + i % 200, sizeof release.request_id);
            status = aster_serializer_call(crowd->fixture->serializer, &release, 0, &reply, NULL);
            aster_reply_fini(&reply);
            granted = status != ASTER_OK;
        }
    }
    return NULL;
}

static void threads_and_a_disk_that_comes_and_goes(void **state)
{
    (void)state;
    struct fixture fixture;
    static const char *const names[THREADS] = {"a", "b", "c", "d"};
    struct crowd crowds[THREADS];
    pthread_t threads[THREADS];
    set_up(&fixture, false);
    for (size_t i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){&fixture, names[i], 0};
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &crowds[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        fail_from_now_on(&fixture, i % 2 == 0 ? FAKE_APPEND_FAIL : FAKE_APPEND_STORE);
        aster_pause_ns(1000000);
    }
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    int granted = 0;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        granted += crowds[i].granted;
    }
    struct asked look;
    ask(fixture.serializer, &look, op_inspect("shared"), 0);
    assert_int_equal(look.reply.decision.snapshot.epoch, 2 * granted); /* one to take it, one to give it back */
    assert_false(look.reply.decision.snapshot.held);
    asked_fini(&look);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_submitted_together_is_one_append_and_answered_together),
        cmocka_unit_test(a_thousand_renewals_do_not_reach_the_journal),
        cmocka_unit_test(changes_larger_than_an_entry_are_several_entries),
        cmocka_unit_test(a_full_disk_refuses_grants_with_the_reason_and_renewals_go_on),
        cmocka_unit_test(epochs_do_not_rise_while_a_hundred_thousand_acquires_fail),
        cmocka_unit_test(a_refusal_that_could_not_be_written_down_is_written_down_later),
        cmocka_unit_test(a_list_shows_what_is_durable),
        cmocka_unit_test(closing_waits_for_what_is_under_way),
        cmocka_unit_test(threads_and_a_disk_that_comes_and_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
