/* Who may own, and who may end it: every predicate in both directions, and which one is asked first. */
#include "kit.h"

static void the_first_acquire_gives_epoch_1_and_release_adds_one(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    EXPECT(s->reply.decision.outcome == ASTER_GRANTED && !s->reply.decision.takeover);
    EXPECT(is_text(s->reply.decision.snapshot.holder, "a") && s->reply.decision.snapshot.held);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    EXPECT(!s->reply.decision.snapshot.held && s->reply.decision.snapshot.holder.size == 0);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 3);
    EXPECT(is_text(s->reply.decision.snapshot.last_holder, "a") && s->reply.decision.snapshot.last_epoch_held == 1);
}

static void a_live_holder_is_never_stolen(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_HELD_BY_OTHER);
    EXPECT(is_text(s->reply.decision.snapshot.holder, "a") && s->reply.decision.epoch == 1);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_HELD_BY_OTHER);
    struct aster_operation own = op(ASTER_OP_ACQUIRE, "r", "b", 0);
    own.ttl_ms = s->ttl_ms;
    own.flags = ASTER_OP_TAKE_OVER_OWN;
    EXPECT(decide(s, &own) == ASTER_REASON_HELD_BY_OTHER);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->held && row->epoch == 1 && is_text(row->holder, "a"));
}

static void no_client_ends_a_lease_by_saying_that_it_expired(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    struct aster_operation verdict = op(ASTER_OP_ACQUIRE, "r", "b", 1);
    verdict.ttl_ms = s->ttl_ms;
    verdict.flags = ASTER_OP_EXPIRED_VERDICT;
    EXPECT(decide(s, &verdict) != ASTER_REASON_NONE);
    const struct aster_operation expire = op(ASTER_OP_EXPIRE, "r", "b", 1);
    EXPECT(decide(s, &expire) != ASTER_REASON_NONE);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->held && row->epoch == 1 && is_text(row->holder, "a"));
}

static void after_release_the_old_epoch_and_the_new_one_are_worth_nothing(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NOT_HELD);
    EXPECT(renew(s, "r", "a", 2) == ASTER_REASON_NOT_HELD);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(release(s, "r", "a", 2) == ASTER_REASON_NOT_HOLDER);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(put(s, "r", "a", 2, 0, "x") == ASTER_REASON_NOT_HELD);
    EXPECT(s->reply.decision.epoch == 2);
}

static void an_equal_epoch_is_worth_nothing_to_a_non_holder(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(renew(s, "r", "b", 1) == ASTER_REASON_NOT_HOLDER);
    EXPECT(release(s, "r", "b", 1) == ASTER_REASON_NOT_HOLDER);
    EXPECT(put(s, "r", "b", 1, 0, "x") == ASTER_REASON_NOT_HOLDER);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->held && row->epoch == 1 && row->lease_revision == 0 && row->value_revision == 0);
}

static void the_epoch_is_asked_before_the_holder(struct scenario *s)
{
    EXPECT(renew(s, "r", "b", 7) == ASTER_REASON_NOT_HELD);
    EXPECT(release(s, "r", "b", 7) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(renew(s, "r", "b", 7) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(s->reply.decision.epoch == 1 && s->reply.decision.carried_epoch == 7);
    EXPECT(release(s, "r", "b", 7) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(renew(s, "r", "a", 0) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(release(s, "r", "a", 0) == ASTER_REASON_EPOCH_MISMATCH);
}

static void take_over_own_fences_the_earlier_incarnation(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    struct aster_operation own = op(ASTER_OP_ACQUIRE, "r", "a", 0);
    own.ttl_ms = s->ttl_ms;
    own.flags = ASTER_OP_TAKE_OVER_OWN;
    EXPECT(decide(s, &own) == ASTER_REASON_NONE && s->reply.decision.epoch == 2 && s->reply.decision.takeover);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(renew(s, "r", "a", 2) == ASTER_REASON_NONE);
}

static void revoke_frees_and_an_expected_epoch_protects_a_newer_holder(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    struct aster_operation expecting = op(ASTER_OP_REVOKE, "r", "operator", 0);
    expecting.flags = ASTER_OP_EXPECT_EPOCH;
    EXPECT(decide(s, &expecting) == ASTER_REASON_EPOCH_MISMATCH);
    expecting.epoch = 2;
    EXPECT(decide(s, &expecting) == ASTER_REASON_EPOCH_MISMATCH);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE);
    expecting.epoch = 1;
    EXPECT(decide(s, &expecting) == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NOT_HELD);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(revoke(s, "r") == ASTER_REASON_NONE && s->reply.decision.epoch == 3);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 4);
}

static void forget_needs_a_free_row_and_its_epochs_never_come_back(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(forget(s, "r") == ASTER_REASON_HELD_BY_OTHER);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 3);
    EXPECT(release(s, "r", "a", 3) == ASTER_REASON_NONE);
    EXPECT(forget(s, "r") == ASTER_REASON_NONE);
    EXPECT(put(s, "r", "a", 3, 0, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 5);
    EXPECT(s->reply.decision.snapshot.value.size == 0 && s->reply.decision.snapshot.last_epoch_held == 0);
    /* The floor is the store's, not the name's. */
    EXPECT(acquire(s, "another", "b") == ASTER_REASON_NONE && s->reply.decision.epoch == 5);
}

static void name_the_request(struct aster_operation *operation, unsigned char id)
{
    memset(operation->request_id, id, sizeof operation->request_id);
}

static void the_same_id_gets_the_same_decision_and_has_no_second_effect(struct scenario *s)
{
    struct aster_operation first = op(ASTER_OP_ACQUIRE, "r", "a", 0);
    first.ttl_ms = s->ttl_ms;
    name_the_request(&first, 1);
    EXPECT(decide(s, &first) == ASTER_REASON_NONE && s->reply.decision.epoch == 1 && !s->reply.decision.replayed);
    EXPECT(decide(s, &first) == ASTER_REASON_NONE && s->reply.decision.epoch == 1 && s->reply.decision.replayed);
    struct aster_operation foreign = first;
    foreign.caller = aster_text("b");
    EXPECT(decide(s, &foreign) == ASTER_REASON_HELD_BY_OTHER);
    struct aster_operation ending = op(ASTER_OP_RELEASE, "r", "a", 1);
    name_the_request(&ending, 2);
    EXPECT(decide(s, &ending) == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    EXPECT(decide(s, &ending) == ASTER_REASON_NONE && s->reply.decision.epoch == 2 && s->reply.decision.replayed);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && !row->held && row->epoch == 2);
    struct aster_operation misused = first;
    name_the_request(&misused, 2);
    EXPECT(decide(s, &misused) == FAILED && s->status == ASTER_ERR_INVALID);
}

static void epochs_only_grow_under_random_operations(struct scenario *s)
{
    static const char *const callers[] = {"a", "b", "c"};
    uint32_t seed = 4711;
    int64_t epoch = 0;
    for (int i = 0; i < 400; i++) {
        seed = seed * 1664525U + 1013904223U;
        const char *caller = callers[seed >> 8 & 1 ? 0 : (seed >> 9) % 3];
        int64_t carried = epoch - (seed >> 16 & 3) / 3;
        switch (seed >> 24 & 7) {
        case 0:
            revoke(s, "r");
            break;
        case 1:
        case 2:
            release(s, "r", caller, carried);
            break;
        case 3:
            renew(s, "r", caller, carried);
            break;
        default:
            acquire(s, "r", caller);
            break;
        }
        const struct aster_snapshot *row = look(s, "r");
        EXPECT(row != NULL && row->epoch >= epoch && row->held == (row->holder.size > 0));
        epoch = row->epoch;
    }
}

const struct scenario_entry aster_conformance_ownership[] = {
    {"the first acquire gives epoch 1 and release adds one", the_first_acquire_gives_epoch_1_and_release_adds_one},
    {"a live holder is never stolen", a_live_holder_is_never_stolen},
    {"no client ends a lease by saying that it expired", no_client_ends_a_lease_by_saying_that_it_expired},
    {"after release the old epoch and the new one are worth nothing",
     after_release_the_old_epoch_and_the_new_one_are_worth_nothing},
    {"an equal epoch is worth nothing to a non-holder", an_equal_epoch_is_worth_nothing_to_a_non_holder},
    {"the epoch is asked before the holder", the_epoch_is_asked_before_the_holder},
    {"take over own fences the earlier incarnation", take_over_own_fences_the_earlier_incarnation},
    {"revoke frees, and an expected epoch protects a newer holder",
     revoke_frees_and_an_expected_epoch_protects_a_newer_holder},
    {"forget needs a free row, and its epochs never come back", forget_needs_a_free_row_and_its_epochs_never_come_back},
    {"the same id gets the same decision and has no second effect",
     the_same_id_gets_the_same_decision_and_has_no_second_effect},
    {"epochs only grow under random operations", epochs_only_grow_under_random_operations},
    {NULL, NULL},
};
