#include "engine/client_operation.h"

#include "base/error.h"

aster_status aster_client_operation_check(const struct aster_operation *operation, const struct aster_limits *limits,
                                          struct aster_error *error)
{
    aster_status status = aster_operation_check(operation, limits, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (operation->kind == ASTER_OP_EXPIRE || (operation->flags & ASTER_OP_EXPIRED_VERDICT) != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s with a verdict about expiry is for journalled serializers: acquire without it",
                               aster_operation_name(operation->kind));
    }
    return ASTER_OK;
}
