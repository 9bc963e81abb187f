/* The fence rule, at the resource: by put, and by a fenced write where the serializer offers one. */
#include "kit.h"

static const char no_fenced_write[] = "the serializer offers no fenced write";

static bool offers_writes(struct scenario *s)
{
    int runs = 0;
    return write_as(s, "never acquired", 1, "a", "a", &runs) != FAILED || s->status != ASTER_ERR_UNSUPPORTED;
}

static void a_put_is_held_to_the_fence_rule_in_its_order(struct scenario *s)
{
    EXPECT(put(s, "r", "a", 0, 0, "x") == ASTER_REASON_NOT_HELD);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(put(s, "r", "b", 0, 9, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(put(s, "r", "b", 2, 9, "x") == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(put(s, "r", "a", INT64_MAX, 0, "x") == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(put(s, "r", "b", 1, 9, "x") == ASTER_REASON_NOT_HOLDER);
    struct aster_operation borrowed = op(ASTER_OP_PUT, "r", "b", 1);
    borrowed.holder = aster_text("a"); /* a's fence in b's hands */
    EXPECT(decide(s, &borrowed) == ASTER_REASON_NOT_HOLDER);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_NONE);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && is_text(row->value, "x") && row->value_revision == 1);
}

static void a_refused_write_never_runs(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    int runs = 0;
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(write_as(s, "r", 0, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH);
    EXPECT(write_as(s, "r", 2, "a", "a", &runs) == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(write_as(s, "r", 1, "b", "b", &runs) == ASTER_REASON_NOT_HOLDER);
    EXPECT(write_as(s, "r", 1, "a", "b", &runs) == ASTER_REASON_NOT_HOLDER);
    EXPECT(write_as(s, "r", 1, "b", "a", &runs) == ASTER_REASON_NOT_HOLDER);
    EXPECT(write_as(s, "other", 0, "a", "a", &runs) == ASTER_REASON_NOT_HELD);
    EXPECT(write_as(s, "other", 1, "a", "a", &runs) == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(runs == 0);
    EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_NONE && runs == 1);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE);
    EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH);
    EXPECT(write_as(s, "r", 2, "a", "a", &runs) == ASTER_REASON_NOT_HELD && runs == 1);
}

static void a_stale_fence_is_refused_after_a_takeover_and_the_new_one_works(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    int runs = 0;
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH && runs == 0);
    EXPECT(write_as(s, "r", 2, "b", "a", &runs) == ASTER_REASON_NOT_HOLDER && runs == 0);
    EXPECT(write_as(s, "r", 2, "b", "b", &runs) == ASTER_REASON_NONE && runs == 1);
}

static void after_a_revoke_none_of_100_queued_writes_is_applied(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    int runs = 0;
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(revoke(s, "r") == ASTER_REASON_NONE);
    for (int i = 0; i < 100; i++) {
        EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH);
    }
    EXPECT(runs == 0);
}

static void a_forgotten_resource_still_refuses_its_old_fences(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    int runs = 0;
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE);
    EXPECT(forget(s, "r") == ASTER_REASON_NONE);
    EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 3);
    EXPECT(write_as(s, "r", 1, "a", "a", &runs) == ASTER_REASON_STALE_EPOCH && runs == 0);
    EXPECT(write_as(s, "r", 3, "a", "a", &runs) == ASTER_REASON_NONE && runs == 1);
}

static aster_status fail_on_purpose(void *tx, void *user)
{
    (void)tx;
    (void)user;
    return ASTER_ERR_CORRUPT;
}

static void what_a_failing_write_returned_is_returned(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    s->status = aster_mutate_fenced(s->serializer, &fence, fence.holder, fail_on_purpose, NULL, &verdict, &s->error);
    EXPECT(s->status == ASTER_ERR_CORRUPT);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE);
}

struct nested {
    struct aster_serializer *serializer;
    aster_status status;
};

static aster_status call_from_inside(void *tx, void *user)
{
    (void)tx;
    struct nested *nested = user;
    struct aster_operation operation = op(ASTER_OP_INSPECT, "another resource", NULL, 0);
    struct aster_reply reply = ASTER_REPLY_INIT;
    nested->status = aster_serializer_call(nested->serializer, &operation, 0, &reply, NULL);
    aster_reply_fini(&reply);
    return ASTER_OK;
}

static void calling_back_from_inside_a_write_is_refused_and_never_deadlocks(struct scenario *s)
{
    SKIP_IF(!offers_writes(s), no_fenced_write);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct nested nested = {s->serializer, ASTER_OK};
    s->status =
        aster_mutate_fenced(s->serializer, &fence, fence.holder, call_from_inside, &nested, &verdict, &s->error);
    EXPECT(s->status == ASTER_OK && verdict.reason == ASTER_REASON_NONE);
    EXPECT(nested.status == ASTER_ERR_REENTRANT);
}

static void after_close_and_under_a_negative_epoch_nothing_is_written(struct scenario *s)
{
    int runs = 0;
    SKIP_IF(!offers_writes(s), no_fenced_write);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(aster_conformance_write(s, "r", -1, "a", "a", &runs) == FAILED && s->status == ASTER_ERR_INVALID);
    aster_serializer_close(s->serializer);
    EXPECT(aster_conformance_write(s, "r", 1, "a", "a", &runs) == FAILED && s->status == ASTER_ERR_CLOSED);
    EXPECT(runs == 0);
}

const struct scenario_entry aster_conformance_fences[] = {
    {"a put is held to the fence rule in its order", a_put_is_held_to_the_fence_rule_in_its_order},
    {"a refused write never runs", a_refused_write_never_runs},
    {"a stale fence is refused after a takeover, and the new one works",
     a_stale_fence_is_refused_after_a_takeover_and_the_new_one_works},
    {"after a revoke none of 100 queued writes is applied", after_a_revoke_none_of_100_queued_writes_is_applied},
    {"a forgotten resource still refuses its old fences", a_forgotten_resource_still_refuses_its_old_fences},
    {"what a failing write returned is returned", what_a_failing_write_returned_is_returned},
    {"calling back from inside a write is refused and never deadlocks",
     calling_back_from_inside_a_write_is_refused_and_never_deadlocks},
    {"after close and under a negative epoch nothing is written",
     after_close_and_under_a_negative_epoch_nothing_is_written},
    {NULL, NULL},
};
