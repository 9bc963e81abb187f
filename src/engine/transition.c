#include "aster/transition.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "engine/fence_rule.h"

/* One decision in the making: what came in, and the effect that is being built. */
struct step {
    const struct aster_row *row;
    const struct aster_operation *operation;
    bool expired;
    struct aster_effect effect;
};

static const unsigned char no_id[ASTER_REQUEST_ID_SIZE];

struct aster_row aster_row_absent(int64_t floor)
{
    struct aster_row row = {0};
    row.epoch = floor;
    return row;
}

static aster_status exhausted(const struct step *step, const char *counter, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_COUNTER_EXHAUSTED,
                           "%s of \"%s\" is at its limit %" PRId64 ": nothing was changed; use a new resource name",
                           counter, aster_printable(step->operation->resource, shown), INT64_MAX);
}

static aster_status deny(struct step *step, enum aster_reason reason)
{
    step->effect.decision.outcome = ASTER_DENIED;
    step->effect.decision.reason = reason;
    return ASTER_OK;
}

static aster_status grant(struct step *step)
{
    step->effect.decision.outcome = ASTER_GRANTED;
    step->effect.changed = true;
    return ASTER_OK;
}

/* End the current lease in the row: free, one epoch later, remembering who held. */
static bool free_row(struct aster_row *row)
{
    if (!aster_increment(&row->epoch)) {
        return false;
    }
    if (row->held) {
        row->last_holder = row->holder;
        row->last_epoch_held = row->epoch - 1;
    }
    row->held = false;
    row->holder = (struct aster_bytes){NULL, 0};
    return true;
}

static aster_status put_value(struct step *step, struct aster_error *error)
{
    struct aster_row *row = &step->effect.row;
    if (!aster_increment(&row->value_revision)) {
        return exhausted(step, "value_revision", error);
    }
    row->value = step->operation->value;
    return ASTER_OK;
}

static aster_status acquire(struct step *step, struct aster_error *error)
{
    const struct aster_operation *operation = step->operation;
    struct aster_row *row = &step->effect.row;
    bool expired = step->expired;
    if ((operation->flags & ASTER_OP_EXPIRED_VERDICT) != 0) {
        expired = row->held && operation->epoch == row->epoch && operation->lease_revision == row->lease_revision;
    }
    bool own = (operation->flags & ASTER_OP_TAKE_OVER_OWN) != 0 && aster_bytes_equal(operation->caller, row->holder);
    if (row->held && !expired && !own) {
        return deny(step, ASTER_REASON_HELD_BY_OTHER);
    }
    if (row->epoch == INT64_MAX) {
        return exhausted(step, "epoch", error);
    }
    if (row->held) {
        step->effect.decision.takeover = true;
        row->last_holder = row->holder;
        row->last_epoch_held = row->epoch;
    }
    row->epoch += 1;
    row->held = true;
    row->holder = operation->caller;
    row->ttl_ms = operation->ttl_ms;
    step->effect.rearm = true;
    return grant(step);
}

static aster_status renew(struct step *step, struct aster_error *error)
{
    struct aster_row *row = &step->effect.row;
    if (!row->held) {
        return deny(step, ASTER_REASON_NOT_HELD);
    }
    if (step->operation->epoch != row->epoch) {
        return deny(step, ASTER_REASON_EPOCH_MISMATCH);
    }
    if (!aster_bytes_equal(step->operation->caller, row->holder)) {
        return deny(step, ASTER_REASON_NOT_HOLDER);
    }
    if (step->expired) {
        return deny(step, ASTER_REASON_EXPIRED);
    }
    if (!aster_increment(&row->lease_revision)) {
        return exhausted(step, "lease_revision", error);
    }
    step->effect.rearm = true;
    return grant(step);
}

static aster_status release(struct step *step, struct aster_error *error)
{
    const struct aster_operation *operation = step->operation;
    struct aster_row *row = &step->effect.row;
    if (operation->epoch != row->epoch) {
        return deny(step, ASTER_REASON_EPOCH_MISMATCH);
    }
    if (!row->held || !aster_bytes_equal(operation->caller, row->holder)) {
        return deny(step, ASTER_REASON_NOT_HOLDER);
    }
    if ((operation->flags & ASTER_OP_WITH_VALUE) != 0) {
        if (operation->value_revision != row->value_revision) {
            return deny(step, ASTER_REASON_REVISION_MISMATCH);
        }
        aster_status status = put_value(step, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    if (!free_row(row)) {
        return exhausted(step, "epoch", error);
    }
    return grant(step);
}

static aster_status revoke(struct step *step, struct aster_error *error)
{
    const struct aster_operation *operation = step->operation;
    if ((operation->flags & ASTER_OP_EXPECT_EPOCH) != 0 && operation->epoch != step->row->epoch) {
        return deny(step, ASTER_REASON_EPOCH_MISMATCH);
    }
    if (!free_row(&step->effect.row)) {
        return exhausted(step, "epoch", error);
    }
    return grant(step);
}

static aster_status expire(struct step *step, struct aster_error *error)
{
    const struct aster_operation *operation = step->operation;
    struct aster_row *row = &step->effect.row;
    if (!row->held) {
        return deny(step, ASTER_REASON_NOT_HELD);
    }
    if (operation->epoch != row->epoch || operation->lease_revision != row->lease_revision) {
        return deny(step, ASTER_REASON_EPOCH_MISMATCH);
    }
    if (!free_row(row)) {
        return exhausted(step, "epoch", error);
    }
    return grant(step);
}

static aster_status put(struct step *step, struct aster_error *error)
{
    const struct aster_operation *operation = step->operation;
    const struct aster_fence fence = {operation->resource, operation->epoch, operation->holder};
    struct aster_verdict verdict = aster_fence_verdict(step->row, operation->resource, &fence, operation->caller);
    if (verdict.reason != ASTER_REASON_NONE) {
        return deny(step, verdict.reason);
    }
    if (operation->value_revision != step->row->value_revision) {
        return deny(step, ASTER_REASON_REVISION_MISMATCH);
    }
    aster_status status = put_value(step, error);
    return status == ASTER_OK ? grant(step) : status;
}

static aster_status forget(struct step *step)
{
    if (step->row->held) {
        return deny(step, ASTER_REASON_HELD_BY_OTHER);
    }
    step->effect.removed = true;
    step->effect.row = aster_row_absent(step->row->epoch);
    return grant(step);
}

static aster_status decide(struct step *step, struct aster_error *error)
{
    switch (step->operation->kind) {
    case ASTER_OP_ACQUIRE:
        return acquire(step, error);
    case ASTER_OP_RENEW:
        return renew(step, error);
    case ASTER_OP_RELEASE:
        return release(step, error);
    case ASTER_OP_REVOKE:
        return revoke(step, error);
    case ASTER_OP_EXPIRE:
        return expire(step, error);
    case ASTER_OP_PUT:
        return put(step, error);
    case ASTER_OP_FORGET:
        return forget(step);
    case ASTER_OP_INSPECT:
        step->effect.decision.outcome = ASTER_GRANTED;
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_INVALID, "operation kind %d is unknown", (int)step->operation->kind);
}

/* Is this the last applied request again? An id that comes back for another kind of operation is a caller's bug. */
static aster_status find_replay(const struct step *step, bool *found, struct aster_error *error)
{
    const struct aster_applied *applied = &step->row->applied;
    const struct aster_operation *operation = step->operation;
    *found = false;
    if (operation->kind == ASTER_OP_INSPECT || memcmp(operation->request_id, no_id, sizeof no_id) == 0 ||
        memcmp(operation->request_id, applied->request_id, sizeof no_id) != 0 ||
        !aster_bytes_equal(operation->caller, applied->caller)) {
        return ASTER_OK;
    }
    if (operation->kind != applied->kind) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "request id was used for %s already and comes again with %s: make a new random id for "
                               "every operation, repeat it only for a retry",
                               aster_operation_name(applied->kind), aster_operation_name(operation->kind));
    }
    *found = true;
    return ASTER_OK;
}

static void replay(struct step *step)
{
    const struct aster_applied *applied = &step->row->applied;
    step->effect.decision.outcome = ASTER_GRANTED;
    step->effect.decision.replayed = true;
    step->effect.decision.takeover = applied->takeover;
    step->effect.decision.epoch = applied->epoch;
}

/* Expiry is the serializer's own doing and no request: the memory of the last request outlives it. */
static void remember(struct step *step)
{
    const struct aster_operation *operation = step->operation;
    if (operation->kind == ASTER_OP_EXPIRE || operation->kind == ASTER_OP_FORGET) {
        return;
    }
    struct aster_applied *applied = &step->effect.row.applied;
    memcpy(applied->request_id, operation->request_id, sizeof applied->request_id);
    applied->caller = operation->caller;
    applied->kind = operation->kind;
    applied->takeover = step->effect.decision.takeover;
    applied->epoch = step->effect.decision.epoch;
}

struct aster_snapshot aster_row_snapshot(struct aster_bytes resource, const struct aster_row *row)
{
    return (struct aster_snapshot){.resource = resource,
                                   .epoch = row->epoch,
                                   .held = row->held,
                                   .holder = row->holder,
                                   .ttl_ms = row->ttl_ms,
                                   .lease_revision = row->lease_revision,
                                   .value = row->value,
                                   .value_revision = row->value_revision,
                                   .last_holder = row->last_holder,
                                   .last_epoch_held = row->last_epoch_held};
}

aster_status aster_transition(const struct aster_row *row, bool expired, const struct aster_operation *operation,
                              struct aster_effect *effect, struct aster_error *error)
{
    static const struct aster_limits hard = {sizeof hard, 1,       ASTER_TTL_HARD_MAX_MS, ASTER_VALUE_MAX, SIZE_MAX,
                                             SIZE_MAX,    SIZE_MAX};
    aster_status status = aster_operation_check(operation, &hard, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct step step = {row, operation, expired && row->held, {.row = *row}};
    struct aster_decision *decision = &step.effect.decision;
    decision->struct_size = sizeof *decision;
    decision->kind = operation->kind;
    bool carries = operation->kind != ASTER_OP_ACQUIRE && operation->kind != ASTER_OP_INSPECT;
    decision->carried_epoch = carries ? operation->epoch : 0;
    bool repeated = false;
    status = find_replay(&step, &repeated, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (repeated) {
        replay(&step);
    } else {
        status = decide(&step, error);
        if (status != ASTER_OK) {
            return status;
        }
        decision->epoch = step.effect.row.epoch;
        if (step.effect.changed) {
            remember(&step);
        }
    }
    decision->snapshot = aster_row_snapshot(operation->resource, &step.effect.row);
    *effect = step.effect;
    return ASTER_OK;
}

struct aster_verdict aster_fence_verdict(const struct aster_row *row, struct aster_bytes resource,
                                         const struct aster_fence *fence, struct aster_bytes writer)
{
    struct aster_verdict verdict = {ASTER_REASON_WRONG_RESOURCE, fence->epoch, row->epoch};
    if (aster_bytes_equal(resource, fence->resource)) {
        verdict.reason = aster_fence_rule(row->epoch, row->held, row->holder, fence, writer);
    }
    return verdict;
}

struct aster_verdict aster_fence_follow(const struct aster_fence *last, const struct aster_fence *fence,
                                        struct aster_bytes writer)
{
    struct aster_verdict verdict = {ASTER_REASON_NONE, fence->epoch, last->epoch};
    if (last->epoch > 0 && !aster_bytes_equal(last->resource, fence->resource)) {
        verdict.reason = ASTER_REASON_WRONG_RESOURCE;
    } else if (!aster_bytes_equal(writer, fence->holder)) {
        verdict.reason = ASTER_REASON_NOT_HOLDER;
    } else if (fence->epoch <= last->epoch) {
        verdict.reason = aster_fence_rule(last->epoch, true, last->holder, fence, writer);
    }
    return verdict;
}
