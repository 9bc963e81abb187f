#include "aster/operation.h"

#include <inttypes.h>

#include "base/error.h"

static const uint32_t flags_of_kind[] = {
    [ASTER_OP_ACQUIRE] = ASTER_OP_TAKE_OVER_OWN | ASTER_OP_EXPIRED_VERDICT,
    [ASTER_OP_RENEW] = 0,
    [ASTER_OP_RELEASE] = ASTER_OP_WITH_VALUE,
    [ASTER_OP_REVOKE] = ASTER_OP_EXPECT_EPOCH,
    [ASTER_OP_EXPIRE] = 0,
    [ASTER_OP_PUT] = 0,
    [ASTER_OP_FORGET] = 0,
    [ASTER_OP_INSPECT] = 0,
};

static const char *caller_role(enum aster_operation_kind kind)
{
    switch (kind) {
    case ASTER_OP_ACQUIRE:
        return "candidate";
    case ASTER_OP_REVOKE:
    case ASTER_OP_FORGET:
        return "authority";
    case ASTER_OP_PUT:
        return "writer";
    default:
        return "holder";
    }
}

static aster_status check_counters(const struct aster_operation *operation, struct aster_error *error)
{
    const struct {
        const char *name;
        int64_t value;
    } counters[] = {{"epoch", operation->epoch},
                    {"lease_revision", operation->lease_revision},
                    {"value_revision", operation->value_revision}};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        if (counters[i].value < 0) {
            return aster_error_set(error, ASTER_ERR_INVALID, "%s is %" PRId64 ": it must be 0 or more",
                                   counters[i].name, counters[i].value);
        }
    }
    return ASTER_OK;
}

static aster_status check_value(const struct aster_operation *operation, const struct aster_limits *limits,
                                struct aster_error *error)
{
    size_t max = limits->value_max_bytes < ASTER_VALUE_MAX ? limits->value_max_bytes : ASTER_VALUE_MAX;
    if (operation->value.size > max) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "value is %zu bytes, value_max_bytes is %zu: store the data elsewhere and put a reference",
            operation->value.size, max);
    }
    return ASTER_OK;
}

static aster_status check_kind(const struct aster_operation *operation, struct aster_error *error)
{
    if (operation->kind < ASTER_OP_ACQUIRE || operation->kind > ASTER_OP_INSPECT) {
        return aster_error_set(error, ASTER_ERR_INVALID, "operation kind %d is unknown: use one of 1 to %d",
                               (int)operation->kind, (int)ASTER_OP_INSPECT);
    }
    uint32_t stray = operation->flags & ~flags_of_kind[operation->kind];
    if (stray != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "flags 0x%" PRIx32 " do not go with %s: leave them out", stray,
                               aster_operation_name(operation->kind));
    }
    return ASTER_OK;
}

aster_status aster_operation_check(const struct aster_operation *operation, const struct aster_limits *limits,
                                   struct aster_error *error)
{
    aster_status status = check_kind(operation, error);
    if (status == ASTER_OK) {
        status = aster_resource_check(operation->resource, error);
    }
    bool anonymous = operation->kind == ASTER_OP_INSPECT || operation->kind == ASTER_OP_EXPIRE;
    if (status == ASTER_OK && !(anonymous && operation->caller.size == 0)) {
        status = aster_identity_check(operation->caller, caller_role(operation->kind), error);
    }
    if (status == ASTER_OK && operation->kind == ASTER_OP_PUT) {
        status = aster_identity_check(operation->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK && operation->kind == ASTER_OP_ACQUIRE) {
        status = aster_ttl_check(operation->ttl_ms, limits, error);
    }
    if (status == ASTER_OK) {
        status = check_counters(operation, error);
    }
    if (status == ASTER_OK) {
        status = check_value(operation, limits, error);
    }
    return status;
}
