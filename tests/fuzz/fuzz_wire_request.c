/* What decodes obeys every rule and survives being encoded and decoded again; what does not is refused without harm. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/frame.h"
#include "wire/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char memory[3][ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];
static const struct aster_limits limits = ASTER_LIMITS_INIT;

static struct aster_scratch *scratch(int index)
{
    static struct aster_scratch scratches[3];
    scratches[index] = (struct aster_scratch){memory[index], sizeof memory[index], 0};
    return &scratches[index];
}

static void must(int truth)
{
    if (!truth) {
        abort();
    }
}

static void check_operation(const struct aster_operation *operation)
{
    must(aster_operation_check(operation, &limits, NULL) == ASTER_OK);
    must(aster_bytes_equal(operation->caller, aster_text("peer")));
    must(operation->kind != ASTER_OP_EXPIRE && (operation->flags & ASTER_OP_EXPIRED_VERDICT) == 0);
}

static void same_operation(const struct aster_operation *a, const struct aster_operation *b)
{
    must(a->kind == b->kind && a->flags == b->flags && a->epoch == b->epoch && a->ttl_ms == b->ttl_ms);
    must(a->value_revision == b->value_revision && aster_bytes_equal(a->resource, b->resource));
    must(aster_bytes_equal(a->value, b->value) && aster_bytes_equal(a->holder, b->holder));
    must(memcmp(a->request_id, b->request_id, sizeof a->request_id) == 0);
}

static void same_list(const struct aster_bytes_list *a, const struct aster_bytes_list *b)
{
    must(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        must(aster_bytes_equal(a->items[i], b->items[i]));
    }
}

static void same_nodes(const struct aster_call *a, const struct aster_call *b)
{
    if (a->kind == ASTER_CALL_REQUIRE) {
        must(aster_verb_name(a->require.verb) != NULL && a->require.verb == b->require.verb);
        must(aster_bytes_equal(a->require.role, b->require.role));
        return;
    }
    must(a->kind == ASTER_CALL_NODE_LIST || aster_node_record_check(&a->node.record, NULL) == ASTER_OK);
    must(aster_bytes_equal(a->node.record.id, b->node.record.id));
    must(aster_bytes_equal(a->node.record.name, b->node.record.name));
    must(a->node.replace == b->node.replace && a->node.revoke == b->node.revoke);
    same_list(&a->node.record.roles, &b->node.record.roles);
    same_list(&a->node.record.resources, &b->node.record.resources);
    same_list(&a->node.dropped, &b->node.dropped);
}

static void check(const struct aster_call *call)
{
    struct aster_call again;
    size_t length;
    uint64_t id;
    if (aster_call_encode(call, scratch(1), wire, sizeof wire, &length, NULL) != ASTER_OK) {
        return; /* does not fit one frame: only a fuzzer's input can be that large */
    }
    struct aster_bytes payload = {wire, length};
    must(aster_call_decode(payload, aster_text("peer"), &limits, scratch(2), &again, &id, NULL) == ASTER_OK);
    must(again.kind == call->kind && again.id == call->id && again.deadline_ms == call->deadline_ms);
    if (call->kind == ASTER_CALL_OPERATION) {
        check_operation(&call->one.operation);
        same_operation(&call->one.operation, &again.one.operation);
    } else if (call->kind == ASTER_CALL_RENEW_MANY) {
        must(call->many.count == again.many.count);
        for (size_t i = 0; i < call->many.count; i++) {
            check_operation(&call->many.operations[i]);
            same_operation(&call->many.operations[i], &again.many.operations[i]);
        }
    } else if (call->kind >= ASTER_CALL_NODE_ADD) {
        same_nodes(call, &again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aster_call call;
    struct aster_bytes payload = {data, size};
    uint64_t id;
    if (aster_call_decode(payload, aster_text("peer"), &limits, scratch(0), &call, &id, NULL) == ASTER_OK) {
        must(id == call.id);
        check(&call);
    }
    return 0;
}
