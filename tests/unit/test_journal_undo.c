/* Lists, the history and the line of those who wait while a journal fails or hangs. */
#include <pthread.h>
#include <stdio.h>

#include "journal/journalled.h"
#include "support/fake_journal.h"
#include "support/requests.h"
#include "support/unit.h"

struct fixture {
    struct fake_store store;
    struct aster_serializer *serializer;
};

static void set_up(struct fixture *fixture, bool stepped)
{
    struct aster_journalled_options options = ASTER_JOURNALLED_OPTIONS_INIT;
    fake_store_init(&fixture->store);
    const struct aster_journal journal = fake_journal(&fixture->store);
    options.memory.stripes = 16; /* ThreadSanitizer counts no more than 64 locks at once */
    options.stepped = stepped;
    assert_int_equal(aster_journalled_open(&options, &journal, &fixture->serializer, NULL), ASTER_OK);
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

static bool count_event(const struct aster_event *event, void *user)
{
    int *counts = user;
    counts[event->kind]++;
    return true;
}

static bool count_row(const struct aster_snapshot *snapshot, void *user)
{
    int *held = user;
    *held += snapshot->held;
    return true;
}

static struct aster_operation rejected_put(int64_t epoch)
{
    struct aster_operation put = op_renew("r", "a", epoch);
    put.kind = ASTER_OP_PUT;
    put.holder = put.caller;
    return put;
}

static void a_list_is_given_while_only_an_event_cannot_be_written(void **state)
{
    (void)state;
    struct fixture fixture;
    int held = 0;
    set_up(&fixture, true);
    struct asked asked;
    ask(fixture.serializer, &asked, op_acquire("held", "a", REQUEST_TTL_MS), 0);
    assert_true(aster_journalled_step(fixture.serializer));
    asked_fini(&asked);
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    ask(fixture.serializer, &asked, rejected_put(7), 0);
    asked_fini(&asked);
    assert_int_equal(aster_list(fixture.serializer, (struct aster_bytes){NULL, 0}, count_row, &held, NULL), ASTER_OK);
    assert_int_equal(held, 1);
    tear_down(&fixture);
}

static void a_list_ends_with_an_error_while_the_disk_hangs(void **state)
{
    (void)state;
    struct fixture fixture;
    struct aster_error error = ASTER_ERROR_INIT;
    int held = 0;
    set_up(&fixture, false);
    pthread_mutex_lock(&fixture.store.lock); /* the append waits for it */
    struct asked asked;
    ask(fixture.serializer, &asked, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(aster_list(fixture.serializer, (struct aster_bytes){NULL, 0}, count_row, &held, &error),
                     ASTER_ERR_TIMEOUT);
    assert_int_equal(held, 0);
    assert_non_null(strstr(error.message, "journal"));
    pthread_mutex_unlock(&fixture.store.lock);
    assert_int_equal(aster_list(fixture.serializer, (struct aster_bytes){NULL, 0}, count_row, &held, NULL), ASTER_OK);
    assert_int_equal(held, 1);
    aster_serializer_destroy(fixture.serializer);
    assert_true(asked_granted(&asked));
    asked_fini(&asked);
    fake_store_fini(&fixture.store);
}

static void rejections_while_the_disk_hangs_take_bounded_memory(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, true);
    for (int i = 0; i < 70000; i++) {
        struct asked asked;
        ask(fixture.serializer, &asked, rejected_put(7), 0);
        assert_int_equal(asked.reply.decision.reason, ASTER_REASON_FUTURE_EPOCH);
        asked_fini(&asked);
    }
    const struct aster_journalled_counts counts = aster_journalled_counts(fixture.serializer);
    assert_int_equal(counts.waiting, 65536);
    assert_int_equal(counts.lost_events, 70000 - 65536);
    while (aster_journalled_step(fixture.serializer)) {
    }
    tear_down(&fixture);
}

static void a_rejection_because_of_what_was_taken_back_is_not_in_the_history(void **state)
{
    (void)state;
    struct fixture fixture;
    int counts[9] = {0};
    struct asked asked[3];
    set_up(&fixture, true);
    ask(fixture.serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    assert_true(aster_journalled_step(fixture.serializer));
    ask(fixture.serializer, &asked[1], op_release("r", "a", 1), 0);
    ask(fixture.serializer, &asked[2], rejected_put(1), 0); /* stale, if the release were to stay */
    fail_from_now_on(&fixture, FAKE_APPEND_FAIL);
    assert_true(aster_journalled_step(fixture.serializer));
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    while (aster_journalled_step(fixture.serializer)) {
    }
    assert_int_equal(asked[1].status, ASTER_ERR_IO);
    assert_true(asked_granted(&asked[2]));
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED], 0);
    for (size_t i = 0; i < 3; i++) {
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

/* "b", "c" and "d" wait for "r", which "a" holds; the release of it is in the entry behind the one that is next. */
enum { PUTS = 20 };
struct line {
    char value[60000];
    char names[PUTS][16];
    struct asked puts[PUTS];
    struct asked holder;
    struct asked release;
    struct asked waiting[3];
};

static void line_begin(struct line *line, struct fixture *fixture)
{
    static const char *const waiters[3] = {"b", "c", "d"};
    ask(fixture->serializer, &line->holder, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    for (size_t i = 0; i < PUTS; i++) {
        snprintf(line->names[i], sizeof line->names[i], "big%zu", i);
        ask(fixture->serializer, &line->puts[i], op_acquire(line->names[i], "a", REQUEST_TTL_MS), 0);
    }
    assert_true(aster_journalled_step(fixture->serializer));
    for (size_t i = 0; i < 3; i++) {
        ask(fixture->serializer, &line->waiting[i], op_acquire("r", waiters[i], REQUEST_TTL_MS), 60000);
    }
    for (size_t i = 0; i < PUTS; i++) {
        struct aster_operation put = op_renew(line->names[i], "a", 1);
        asked_fini(&line->puts[i]);
        put.kind = ASTER_OP_PUT;
        put.holder = put.caller;
        put.value = (struct aster_bytes){line->value, sizeof line->value};
        ask(fixture->serializer, &line->puts[i], put, 0);
    }
    ask(fixture->serializer, &line->release, op_release("r", "a", 1), 0);
    fail_from_now_on(fixture, FAKE_APPEND_FAIL);
}

static void line_end(struct line *line)
{
    for (size_t i = 0; i < 3; i++) {
        asked_fini(&line->waiting[i]);
    }
    for (size_t i = 0; i < PUTS; i++) {
        asked_fini(&line->puts[i]);
    }
    asked_fini(&line->holder);
    asked_fini(&line->release);
}

static void who_was_first_in_line_is_first_again_after_an_undo(void **state)
{
    (void)state;
    struct fixture fixture;
    static struct line line;
    set_up(&fixture, true);
    line_begin(&line, &fixture);
    assert_true(aster_journalled_step(fixture.serializer));
    assert_int_equal(line.puts[0].status, ASTER_ERR_IO);
    assert_int_equal(line.waiting[0].answers, 0);
    fail_from_now_on(&fixture, FAKE_APPEND_STORE);
    while (aster_journalled_step(fixture.serializer)) {
    }
    assert_true(asked_granted(&line.release));
    assert_true(asked_granted(&line.waiting[0]));
    assert_int_equal(line.waiting[1].answers + line.waiting[2].answers, 0);
    aster_serializer_close(fixture.serializer);
    line_end(&line);
    tear_down(&fixture);
}

static void an_undo_after_the_close_leaves_nobody_in_line(void **state)
{
    (void)state;
    struct fixture fixture;
    static struct line line;
    set_up(&fixture, true);
    line_begin(&line, &fixture);
    aster_serializer_close(fixture.serializer);
    assert_int_equal(line.waiting[0].answers, 0); /* its grant is on its way */
    assert_true(aster_journalled_step(fixture.serializer));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(line.waiting[i].answers, 1);
        assert_int_equal(line.waiting[i].status, ASTER_ERR_CLOSED);
    }
    line_end(&line);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_given_while_only_an_event_cannot_be_written),
        cmocka_unit_test(a_list_ends_with_an_error_while_the_disk_hangs),
        cmocka_unit_test(rejections_while_the_disk_hangs_take_bounded_memory),
        cmocka_unit_test(a_rejection_because_of_what_was_taken_back_is_not_in_the_history),
        cmocka_unit_test(who_was_first_in_line_is_first_again_after_an_undo),
        cmocka_unit_test(an_undo_after_the_close_leaves_nobody_in_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
