/* Each 4 bytes are one operation on a table: kind and flags, names and id, counters, clock step. */
#include <stdint.h>
#include <stdlib.h>

#include "engine/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int64_t epoch_of(struct aster_table *table, struct aster_bytes resource, int64_t now_ns)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_table_result result;
    operation.kind = ASTER_OP_INSPECT;
    operation.resource = resource;
    require(aster_table_apply(table, &operation, now_ns, &result, NULL) == ASTER_OK);
    return result.effect.decision.snapshot.epoch;
}

static void step(struct aster_table *table, const uint8_t data[4], int64_t now_ns)
{
    static const char names[] = "abcd";
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_table_result result;
    operation.kind = (enum aster_operation_kind)(data[0] & 15);
    operation.flags = data[0] >> 4;
    operation.resource = (struct aster_bytes){&names[data[1] & 3], 1};
    operation.caller = (struct aster_bytes){&names[data[1] >> 2 & 3], 1};
    operation.holder = operation.caller;
    operation.request_id[0] = data[1] >> 4;
    operation.ttl_ms = 100;
    int64_t before = epoch_of(table, operation.resource, now_ns);
    operation.epoch = before + (data[2] & 3) - 1;
    operation.lease_revision = data[2] >> 2 & 7;
    operation.value_revision = data[2] >> 5;
    uint64_t hash = aster_table_state_hash(table);
    aster_status status = aster_table_apply(table, &operation, now_ns, &result, NULL);
    require(epoch_of(table, operation.resource, now_ns) >= before);
    if (status != ASTER_OK || !(result.effect.changed || result.effect.removed)) {
        require(aster_table_state_hash(table) == hash);
    }
    require(aster_table_check(table) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct aster_table_options options = {{1, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    int64_t now_ns = 0;
    require(aster_table_create(&options, &table, NULL) == ASTER_OK);
    for (size_t at = 0; at + 4 <= size; at += 4) {
        now_ns += data[at + 3] * INT64_C(1000000);
        step(table, &data[at], now_ns);
    }
    aster_table_destroy(table);
    return 0;
}
