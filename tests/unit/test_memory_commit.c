/* The memory serializer whose decisions are made durable before anybody hears of them, and what is left of them when
 * they cannot be. */
#include "aster/memory.h"
#include "support/fake_clock.h"
#include "support/fake_committer.h"
#include "support/requests.h"
#include "support/unit.h"

struct fixture {
    struct fake_clock *clock;
    struct fake_committer committer;
    struct aster_serializer *serializer;
};

static void set_up(struct fixture *fixture)
{
    fixture->clock = fake_clock_create();
    fake_committer_open(&fixture->committer, fake_clock_clock(fixture->clock));
    fixture->serializer = fixture->committer.serializer;
}

static void tear_down(struct fixture *fixture)
{
    fake_committer_close(&fixture->committer);
    fake_clock_destroy(fixture->clock);
}

static void all_durable(struct fixture *fixture)
{
    fake_committer_durable(&fixture->committer, fixture->committer.count);
}

/* One operation and its answer, durable at once. */
static int64_t settled(struct fixture *fixture, struct aster_operation operation)
{
    struct asked asked;
    ask(fixture->serializer, &asked, operation, 0);
    all_durable(fixture);
    assert_true(asked_granted(&asked));
    int64_t epoch = asked.reply.decision.epoch;
    asked_fini(&asked);
    return epoch;
}

static struct aster_operation op_put(const char *resource, const char *writer, int64_t epoch, int64_t revision,
                                     const char *value)
{
    struct aster_operation operation = op_renew(resource, writer, epoch);
    operation.kind = ASTER_OP_PUT;
    operation.holder = operation.caller;
    operation.value_revision = revision;
    operation.value = aster_text(value);
    return operation;
}

/* Of a row that nothing is under way for. */
static struct aster_snapshot look(struct fixture *fixture, struct asked *asked, const char *resource)
{
    ask(fixture->serializer, asked, op_inspect(resource), 0);
    assert_int_equal(asked->answers, 1);
    assert_int_equal(asked->status, ASTER_OK);
    return asked->reply.decision.snapshot;
}

static void a_grant_is_answered_once_it_is_durable_and_not_before(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct asked grant;
    ask(fixture.serializer, &grant, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(grant.answers, 0);
    assert_int_equal(fixture.committer.count, 1);
    all_durable(&fixture);
    assert_int_equal(grant.answers, 1);
    assert_true(asked_granted(&grant));
    asked_fini(&grant);
    tear_down(&fixture);
}

static void renewals_make_no_change_and_are_answered_at_once(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    struct asked other;
    ask(fixture.serializer, &other, op_acquire("elsewhere", "a", REQUEST_TTL_MS), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_NONE);
    }
    assert_int_equal(fixture.committer.count, 1);
    assert_int_equal(other.answers, 0);
    all_durable(&fixture);
    asked_fini(&other);
    tear_down(&fixture);
}

static void whatever_looks_at_a_row_under_change_waits_for_the_change(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    struct asked asked[5];
    ask(fixture.serializer, &asked[0], op_put("r", "a", epoch, 0, "v1"), 0);
    ask(fixture.serializer, &asked[1], op_renew("r", "a", epoch), 0);
    ask(fixture.serializer, &asked[2], op_acquire("r", "b", REQUEST_TTL_MS), 0);
    ask(fixture.serializer, &asked[3], op_inspect("r"), 0);
    ask(fixture.serializer, &asked[4], op_put("r", "b", epoch, 1, "v2"), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(asked[i].answers, 0);
    }
    fake_committer_durable(&fixture.committer, 1);
    assert_int_equal(asked[0].answers, 1);
    all_durable(&fixture);
    assert_true(asked_granted(&asked[1]));
    assert_int_equal(asked[2].reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(asked[3].reply.decision.snapshot.value_revision, 1);
    assert_int_equal(asked[4].reply.decision.reason, ASTER_REASON_NOT_HOLDER);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(asked[i].answers, 1);
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

static void a_repeat_of_a_request_that_is_under_way_waits_too(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct aster_operation acquire = op_acquire("r", "a", REQUEST_TTL_MS);
    memset(acquire.request_id, 7, sizeof acquire.request_id);
    struct asked first;
    struct asked repeat;
    ask(fixture.serializer, &first, acquire, 0);
    ask(fixture.serializer, &repeat, acquire, 0);
    assert_int_equal(repeat.answers, 0);
    all_durable(&fixture);
    assert_true(asked_granted(&repeat));
    assert_true(repeat.reply.decision.replayed);
    assert_int_equal(repeat.reply.decision.epoch, first.reply.decision.epoch);
    asked_fini(&first);
    asked_fini(&repeat);
    tear_down(&fixture);
}

static void what_failed_is_refused_and_its_row_is_what_it_was(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    settled(&fixture, op_put("r", "a", epoch, 0, "v1"));
    fake_clock_advance_ms(fixture.clock, 3000);
    struct asked asked[4];
    ask(fixture.serializer, &asked[0], op_put("r", "a", epoch, 1, "v2"), 0);
    ask(fixture.serializer, &asked[1], op_release("r", "a", epoch), 0);
    ask(fixture.serializer, &asked[2], op_acquire("r", "b", REQUEST_TTL_MS), 0);
    ask(fixture.serializer, &asked[3], op_acquire("new", "b", REQUEST_TTL_MS), 0);
    fake_committer_fail(&fixture.committer, 4, ASTER_ERR_IO);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(asked[i].answers, 1);
        assert_int_equal(asked[i].status, ASTER_ERR_IO);
        asked_fini(&asked[i]);
    }
    struct asked now;
    struct aster_snapshot row = look(&fixture, &now, "r");
    assert_true(row.held);
    assert_int_equal(row.epoch, epoch);
    assert_memory_equal(row.holder.data, "a", 1);
    assert_int_equal(row.remaining_ns, INT64_C(7000000000));
    assert_int_equal(row.value_revision, 1);
    assert_memory_equal(row.value.data, "v1", 2);
    asked_fini(&now);
    row = look(&fixture, &now, "new");
    assert_int_equal(row.epoch, 0);
    assert_false(row.held);
    asked_fini(&now);
    assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_NONE);
    tear_down(&fixture);
}

static void what_was_decided_on_top_of_a_failure_is_decided_anew_in_its_order(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct asked asked[3];
    ask(fixture.serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    ask(fixture.serializer, &asked[1], op_revoke("r", "op"), 0);
    ask(fixture.serializer, &asked[2], op_acquire("r", "b", REQUEST_TTL_MS), 0);
    fake_committer_fail(&fixture.committer, 1, ASTER_ERR_INDETERMINATE);
    assert_int_equal(asked[0].status, ASTER_ERR_INDETERMINATE);
    assert_int_equal(asked[1].answers, 0);
    assert_int_equal(asked[2].answers, 0);
    all_durable(&fixture);
    assert_int_equal(asked[1].reply.decision.epoch, 1);
    assert_int_equal(asked[2].reply.decision.epoch, 2);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(asked[i].answers, 1);
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

static void a_renewal_held_back_by_a_change_that_fails_succeeds(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    fake_clock_advance_ms(fixture.clock, 9000);
    struct asked put;
    struct asked renewal;
    ask(fixture.serializer, &put, op_put("r", "a", epoch, 0, "v"), 0);
    ask(fixture.serializer, &renewal, op_renew("r", "a", epoch), 0);
    fake_committer_fail(&fixture.committer, 1, ASTER_ERR_IO);
    assert_int_equal(put.status, ASTER_ERR_IO);
    assert_int_equal(renewal.answers, 1);
    assert_true(asked_granted(&renewal));
    asked_fini(&put);
    asked_fini(&renewal);
    fake_clock_advance_ms(fixture.clock, 9000);
    assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_NONE);
    tear_down(&fixture);
}

static void a_release_and_the_grant_of_the_first_waiter_are_one_behind_the_other(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    struct asked waiters[2];
    ask(fixture.serializer, &waiters[0], op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    ask(fixture.serializer, &waiters[1], op_acquire("r", "c", REQUEST_TTL_MS), 60000);
    struct asked release;
    ask(fixture.serializer, &release, op_release("r", "a", epoch), 0);
    assert_int_equal(fixture.committer.count, 2);
    all_durable(&fixture);
    assert_true(asked_granted(&release));
    assert_true(asked_granted(&waiters[0]));
    assert_int_equal(waiters[0].reply.decision.epoch, epoch + 2);
    assert_int_equal(waiters[1].answers, 0);
    settled(&fixture, op_release("r", "b", epoch + 2));
    assert_true(asked_granted(&waiters[1]));
    asked_fini(&release);
    asked_fini(&waiters[0]);
    asked_fini(&waiters[1]);
    tear_down(&fixture);
}

static void those_who_wait_behind_a_grant_that_failed_get_their_turn_when_the_disk_is_back(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct asked asked[3];
    ask(fixture.serializer, &asked[0], op_acquire("r", "a", REQUEST_TTL_MS), 0);
    ask(fixture.serializer, &asked[1], op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    ask(fixture.serializer, &asked[2], op_acquire("r", "c", REQUEST_TTL_MS), 60000);
    fake_committer_fail(&fixture.committer, 1, ASTER_ERR_IO);
    assert_int_equal(asked[0].status, ASTER_ERR_IO);
    assert_int_equal(asked[1].answers, 0);
    fake_clock_advance_ms(fixture.clock, 99);
    assert_int_equal(fixture.committer.count, 0); /* not at once: the disk has just failed */
    fake_clock_advance_ms(fixture.clock, 1);
    assert_int_equal(fixture.committer.count, 1);
    all_durable(&fixture);
    assert_true(asked_granted(&asked[1]));
    assert_int_equal(asked[1].reply.decision.epoch, 1);
    assert_int_equal(asked[2].answers, 0);
    fake_clock_advance_ms(fixture.clock, REQUEST_TTL_MS);
    all_durable(&fixture);
    assert_true(asked_granted(&asked[2]));
    assert_true(asked[2].reply.decision.takeover);
    for (size_t i = 0; i < 3; i++) {
        asked_fini(&asked[i]);
    }
    tear_down(&fixture);
}

static void a_takeover_that_failed_leaves_the_row_expired_and_to_be_had(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    struct asked waiter;
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    fake_clock_advance_ms(fixture.clock, REQUEST_TTL_MS);
    assert_int_equal(fixture.committer.count, 1);
    fake_committer_fail(&fixture.committer, 1, ASTER_ERR_IO);
    assert_int_equal(waiter.status, ASTER_ERR_IO);
    asked_fini(&waiter);
    assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_EXPIRED);
    assert_int_equal(settled(&fixture, op_acquire("r", "c", REQUEST_TTL_MS)), epoch + 1);
    tear_down(&fixture);
}

static void a_floor_that_is_not_durable_is_not_shown_and_goes_back_with_its_row(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    epoch = settled(&fixture, op_release("r", "a", epoch));
    struct asked forget;
    struct asked inspect;
    ask(fixture.serializer, &forget, op_forget("r", "op"), 0);
    ask(fixture.serializer, &inspect, op_inspect("never/seen"), 0);
    assert_int_equal(inspect.answers, 0);
    fake_committer_fail(&fixture.committer, 1, ASTER_ERR_IO);
    assert_int_equal(forget.status, ASTER_ERR_IO);
    assert_int_equal(inspect.answers, 1);
    assert_int_equal(inspect.reply.decision.snapshot.epoch, 0);
    asked_fini(&forget);
    asked_fini(&inspect);
    assert_int_equal(look(&fixture, &inspect, "r").epoch, epoch);
    asked_fini(&inspect);
    settled(&fixture, op_forget("r", "op"));
    assert_int_equal(look(&fixture, &inspect, "never/seen").epoch, epoch);
    asked_fini(&inspect);
    tear_down(&fixture);
}

static void a_change_that_finds_no_memory_is_not_applied(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    fixture.committer.refuses = true;
    struct asked release;
    ask(fixture.serializer, &release, op_release("r", "a", epoch), 0);
    assert_int_equal(release.status, ASTER_ERR_NOMEM);
    asked_fini(&release);
    assert_int_equal(decide_now(fixture.serializer, op_renew("r", "a", epoch), NULL), ASTER_REASON_NONE);
    fixture.committer.refuses = false;
    assert_int_equal(settled(&fixture, op_release("r", "a", epoch)), epoch + 1);
    tear_down(&fixture);
}

static bool count_event(const struct aster_event *event, void *user)
{
    int *counts = user;
    counts[event->kind]++;
    return true;
}

static void the_history_has_what_is_durable_and_nothing_else(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int64_t epoch = settled(&fixture, op_acquire("r", "a", REQUEST_TTL_MS));
    struct asked release;
    struct asked stale;
    ask(fixture.serializer, &stale, op_put("r", "a", epoch - 1, 0, "v"), 0);
    assert_int_equal(stale.answers, 1); /* a refusal need not wait for its line in the history */
    assert_int_equal(stale.reply.decision.reason, ASTER_REASON_STALE_EPOCH);
    ask(fixture.serializer, &release, op_release("r", "a", epoch), 0);
    int counts[9] = {0};
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_GRANTED], 1);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED] + counts[ASTER_EVENT_RELEASED], 0);
    all_durable(&fixture);
    assert_int_equal(aster_history(fixture.serializer, NULL, count_event, counts, NULL), ASTER_OK);
    assert_int_equal(counts[ASTER_EVENT_FENCE_REJECTED], 1);
    assert_int_equal(counts[ASTER_EVENT_RELEASED], 1);
    asked_fini(&stale);
    asked_fini(&release);
    tear_down(&fixture);
}

static void closing_answers_what_is_under_way_when_it_is_durable(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct asked grant;
    struct asked waiter;
    struct asked late;
    ask(fixture.serializer, &grant, op_acquire("r", "a", REQUEST_TTL_MS), 0);
    ask(fixture.serializer, &waiter, op_acquire("r", "b", REQUEST_TTL_MS), 60000);
    aster_serializer_close(fixture.serializer);
    assert_int_equal(waiter.status, ASTER_ERR_CLOSED);
    assert_int_equal(grant.answers, 0);
    ask(fixture.serializer, &late, op_acquire("s", "a", REQUEST_TTL_MS), 0);
    assert_int_equal(late.status, ASTER_ERR_CLOSED);
    all_durable(&fixture);
    assert_true(asked_granted(&grant));
    asked_fini(&grant);
    asked_fini(&waiter);
    asked_fini(&late);
    tear_down(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_is_answered_once_it_is_durable_and_not_before),
        cmocka_unit_test(renewals_make_no_change_and_are_answered_at_once),
        cmocka_unit_test(whatever_looks_at_a_row_under_change_waits_for_the_change),
        cmocka_unit_test(a_repeat_of_a_request_that_is_under_way_waits_too),
        cmocka_unit_test(what_failed_is_refused_and_its_row_is_what_it_was),
        cmocka_unit_test(what_was_decided_on_top_of_a_failure_is_decided_anew_in_its_order),
        cmocka_unit_test(a_renewal_held_back_by_a_change_that_fails_succeeds),
        cmocka_unit_test(a_release_and_the_grant_of_the_first_waiter_are_one_behind_the_other),
        cmocka_unit_test(those_who_wait_behind_a_grant_that_failed_get_their_turn_when_the_disk_is_back),
        cmocka_unit_test(a_takeover_that_failed_leaves_the_row_expired_and_to_be_had),
        cmocka_unit_test(a_floor_that_is_not_durable_is_not_shown_and_goes_back_with_its_row),
        cmocka_unit_test(a_change_that_finds_no_memory_is_not_applied),
        cmocka_unit_test(the_history_has_what_is_durable_and_nothing_else),
        cmocka_unit_test(closing_answers_what_is_under_way_when_it_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
