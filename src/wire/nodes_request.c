#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"

#define CASE(name) ASTER__LEASE__V1__REQUEST__OPERATION_##name

aster_status aster_list_to_binary(const struct aster_bytes_list *list, struct aster_scratch *scratch, size_t *count,
                                  ProtobufCBinaryData **items, struct aster_error *error)
{
    ProtobufCBinaryData *made = aster_scratch_take(scratch, list->count * sizeof *made);
    if (made == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < list->count; i++) {
        made[i] = aster_to_binary(list->items[i]);
    }
    *count = list->count;
    *items = made;
    return ASTER_OK;
}

aster_status aster_list_from_binary(size_t count, const ProtobufCBinaryData *items, struct aster_scratch *scratch,
                                    struct aster_bytes_list *list, struct aster_error *error)
{
    struct aster_bytes *made = aster_scratch_take(scratch, count * sizeof *made);
    if (made == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < count; i++) {
        made[i] = aster_from_binary(items[i]);
    }
    *list = (struct aster_bytes_list){made, count};
    return ASTER_OK;
}

/* ---- encode ---- */

static aster_status fill_add(const struct aster_call *call, struct aster_scratch *scratch,
                             Aster__Lease__V1__NodeAdd *message, struct aster_error *error)
{
    const struct aster_node_record *record = &call->node.record;
    message->id = aster_to_binary(record->id);
    message->name = aster_to_binary(record->name);
    message->replace = call->node.replace;
    aster_status status = aster_list_to_binary(&record->roles, scratch, &message->n_roles, &message->roles, error);
    return status == ASTER_OK
               ? aster_list_to_binary(&record->resources, scratch, &message->n_resources, &message->resources, error)
               : status;
}

static aster_status fill_role(const struct aster_call *call, struct aster_scratch *scratch,
                              Aster__Lease__V1__NodeRole *message, struct aster_error *error)
{
    message->id = aster_to_binary(call->node.record.id);
    aster_status status =
        aster_list_to_binary(&call->node.record.roles, scratch, &message->n_add, &message->add, error);
    return status == ASTER_OK
               ? aster_list_to_binary(&call->node.dropped, scratch, &message->n_drop, &message->drop, error)
               : status;
}

aster_status aster_nodes_call_encode(const struct aster_call *call, const Aster__Lease__V1__Request *request,
                                     struct aster_scratch *scratch, void *data, size_t size, size_t *length,
                                     struct aster_error *error)
{
    Aster__Lease__V1__Request whole = *request; /* what it points to lives here only */
    Aster__Lease__V1__NodeAdd add = ASTER__LEASE__V1__NODE_ADD__INIT;
    Aster__Lease__V1__NodeRole role = ASTER__LEASE__V1__NODE_ROLE__INIT;
    Aster__Lease__V1__NodeRemove removal = ASTER__LEASE__V1__NODE_REMOVE__INIT;
    Aster__Lease__V1__NodeList list = ASTER__LEASE__V1__NODE_LIST__INIT;
    Aster__Lease__V1__Require require = ASTER__LEASE__V1__REQUIRE__INIT;
    aster_status status = ASTER_OK;
    switch (call->kind) {
    case ASTER_CALL_NODE_ADD:
        status = fill_add(call, scratch, &add, error);
        whole.operation_case = CASE(NODE_ADD);
        whole.node_add = &add;
        break;
    case ASTER_CALL_NODE_ROLE:
        status = fill_role(call, scratch, &role, error);
        whole.operation_case = CASE(NODE_ROLE);
        whole.node_role = &role;
        break;
    case ASTER_CALL_NODE_REMOVE:
        removal.id = aster_to_binary(call->node.record.id);
        removal.revoke = call->node.revoke;
        whole.operation_case = CASE(NODE_REMOVE);
        whole.node_remove = &removal;
        break;
    case ASTER_CALL_NODE_LIST:
        list.after = aster_to_binary(call->node.record.id);
        whole.operation_case = CASE(NODE_LIST);
        whole.node_list = &list;
        break;
    default:
        require.verb = (Aster__Lease__V1__Verb)call->require.verb;
        require.role = aster_to_binary(call->require.role);
        whole.operation_case = CASE(REQUIRE);
        whole.require = &require;
        break;
    }
    return status == ASTER_OK ? aster_message_pack(&whole.base, data, size, length, error) : status;
}

/* ---- decode ---- */

static aster_status read_add(const Aster__Lease__V1__NodeAdd *message, struct aster_scratch *scratch,
                             struct aster_call *call, struct aster_error *error)
{
    struct aster_node_record *record = &call->node.record;
    call->kind = ASTER_CALL_NODE_ADD;
    record->id = aster_from_binary(message->id);
    record->name = aster_from_binary(message->name);
    call->node.replace = message->replace != 0;
    aster_status status = aster_list_from_binary(message->n_roles, message->roles, scratch, &record->roles, error);
    if (status == ASTER_OK) {
        status = aster_list_from_binary(message->n_resources, message->resources, scratch, &record->resources, error);
    }
    return status == ASTER_OK ? aster_node_record_check(record, error) : status;
}

static bool contains(const struct aster_bytes_list *list, struct aster_bytes text)
{
    for (size_t i = 0; i < list->count; i++) {
        if (aster_bytes_equal(list->items[i], text)) {
            return true;
        }
    }
    return false;
}

static aster_status check_role_change(const struct aster_bytes_list *added, const struct aster_bytes_list *dropped,
                                      struct aster_error *error)
{
    if (added->count + dropped->count == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "no role is named: give some to add or to drop");
    }
    aster_status status = aster_roles_check(added, error);
    if (status == ASTER_OK) {
        status = aster_roles_check(dropped, error);
    }
    for (size_t i = 0; status == ASTER_OK && i < added->count; i++) {
        if (contains(dropped, added->items[i])) {
            char shown[ASTER_PRINTABLE_MAX];
            status = aster_error_set(error, ASTER_ERR_INVALID, "role \"%s\" is to be added and dropped: choose one",
                                     aster_printable(added->items[i], shown));
        }
    }
    return status;
}

static aster_status read_role(const Aster__Lease__V1__NodeRole *message, struct aster_scratch *scratch,
                              struct aster_call *call, struct aster_error *error)
{
    struct aster_node_record *record = &call->node.record;
    call->kind = ASTER_CALL_NODE_ROLE;
    record->id = aster_from_binary(message->id);
    aster_status status = aster_list_from_binary(message->n_add, message->add, scratch, &record->roles, error);
    if (status == ASTER_OK) {
        status = aster_list_from_binary(message->n_drop, message->drop, scratch, &call->node.dropped, error);
    }
    if (status == ASTER_OK) {
        status = check_role_change(&record->roles, &call->node.dropped, error);
    }
    return status == ASTER_OK ? aster_node_id_check(record->id, error) : status;
}

static aster_status read_require(const Aster__Lease__V1__Require *message, struct aster_call *call,
                                 struct aster_error *error)
{
    call->kind = ASTER_CALL_REQUIRE;
    call->require.verb = (int)message->verb;
    call->require.role = aster_from_binary(message->role);
    aster_status status = aster_verb_check(call->require.verb, error);
    return status == ASTER_OK && call->require.role.size > 0 ? aster_role_check(call->require.role, error) : status;
}

aster_status aster_nodes_call_read(const Aster__Lease__V1__Request *request, struct aster_scratch *scratch,
                                   struct aster_call *call, struct aster_error *error)
{
    switch (request->operation_case) {
    case CASE(NODE_ADD):
        return read_add(request->node_add, scratch, call, error);
    case CASE(NODE_ROLE):
        return read_role(request->node_role, scratch, call, error);
    case CASE(NODE_REMOVE):
        call->kind = ASTER_CALL_NODE_REMOVE;
        call->node.record.id = aster_from_binary(request->node_remove->id);
        call->node.revoke = request->node_remove->revoke != 0;
        return aster_node_id_check(call->node.record.id, error);
    case CASE(NODE_LIST):
        call->kind = ASTER_CALL_NODE_LIST;
        call->node.record.id = aster_from_binary(request->node_list->after);
        return call->node.record.id.size == 0 ? ASTER_OK : aster_node_id_check(call->node.record.id, error);
    case CASE(REQUIRE):
        return read_require(request->require, call, error);
    default:
        return aster_error_set(
            error, ASTER_ERR_UNSUPPORTED,
            "the request has no operation that this version knows: update the server, or send one of grantor.proto");
    }
}
