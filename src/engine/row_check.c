#include "engine/codec.h"

static bool is_name(struct aster_bytes identity, bool required)
{
    if (identity.size == 0) {
        return !required;
    }
    return aster_identity_check(identity, "identity", NULL) == ASTER_OK;
}

static const char *check_applied(const struct aster_row *row)
{
    const struct aster_applied *applied = &row->applied;
    bool none = applied->kind == (enum aster_operation_kind)0;
    if (none != (applied->caller.size == 0)) {
        return "the last request has a kind without a caller or a caller without a kind";
    }
    if (!none && (applied->kind < ASTER_OP_ACQUIRE || applied->kind > ASTER_OP_INSPECT)) {
        return "the last request has an unknown kind";
    }
    if (applied->epoch < 0 || applied->epoch > row->epoch) {
        return "the last request's epoch is out of range";
    }
    return is_name(applied->caller, false) ? NULL : "the last request's caller is not a valid name";
}

const char *aster_row_check(struct aster_bytes resource, const struct aster_row *row)
{
    if (aster_resource_check(resource, NULL) != ASTER_OK) {
        return "the resource is not a valid name";
    }
    if (row->epoch < 0 || row->lease_revision < 0 || row->value_revision < 0 || row->last_epoch_held < 0) {
        return "a counter is negative";
    }
    if (row->held != (row->holder.size > 0)) {
        return "held and holder contradict each other";
    }
    if (row->held && row->epoch == 0) {
        return "it is held at epoch 0";
    }
    if (!is_name(row->holder, row->held) || !is_name(row->last_holder, false)) {
        return "a holder is not a valid name";
    }
    if (row->ttl_ms < 0 || row->ttl_ms > ASTER_TTL_HARD_MAX_MS || (row->held && row->ttl_ms == 0)) {
        return "the ttl is out of range";
    }
    if (row->last_epoch_held > row->epoch) {
        return "the last epoch held is in the future";
    }
    if (row->value.size > ASTER_VALUE_MAX) {
        return "the value is too long";
    }
    return check_applied(row);
}
