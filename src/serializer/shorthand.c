#include "aster/serializer.h"

#include "base/error.h"

aster_status aster_inspect(struct aster_serializer *serializer, struct aster_bytes resource, struct aster_reply *reply,
                           struct aster_error *error)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_INSPECT;
    operation.resource = resource;
    return aster_serializer_call(serializer, &operation, 0, reply, error);
}

aster_status aster_revoke(struct aster_serializer *serializer, struct aster_bytes resource,
                          struct aster_bytes authority, int64_t expected_epoch, struct aster_reply *reply,
                          struct aster_error *error)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_REVOKE;
    operation.resource = resource;
    operation.caller = authority;
    if (expected_epoch >= 0) {
        operation.flags = ASTER_OP_EXPECT_EPOCH;
        operation.epoch = expected_epoch;
    }
    return aster_serializer_call(serializer, &operation, 0, reply, error);
}

aster_status aster_put(struct aster_serializer *serializer, const struct aster_fence *fence, struct aster_bytes writer,
                       int64_t expected_value_revision, struct aster_bytes value, struct aster_reply *reply,
                       struct aster_error *error)
{
    if (fence == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "no fence was given: the lease is not held, or not any more; acquire it first");
    }
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_PUT;
    operation.resource = fence->resource;
    operation.caller = writer;
    operation.holder = fence->holder;
    operation.epoch = fence->epoch;
    operation.value_revision = expected_value_revision;
    operation.value = value;
    return aster_serializer_call(serializer, &operation, 0, reply, error);
}
