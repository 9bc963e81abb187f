#include "support/operations.h"

struct aster_operation operation_of(enum aster_operation_kind kind, const char *caller, int64_t epoch)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text("r");
    operation.caller = aster_text(caller);
    operation.epoch = epoch;
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 10000 : 0;
    if (kind == ASTER_OP_PUT) {
        operation.holder = operation.caller;
    }
    return operation;
}

struct aster_operation with_id(struct aster_operation operation, uint64_t number)
{
    memcpy(operation.request_id, &number, sizeof number);
    return operation;
}

struct aster_row row_held(const char *holder, int64_t epoch)
{
    struct aster_row row = aster_row_absent(epoch);
    row.held = true;
    row.holder = aster_text(holder);
    row.ttl_ms = 10000;
    return row;
}
