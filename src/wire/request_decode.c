#include <inttypes.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"
#include "wire/request.h"

#define CASE(name) ASTER__LEASE__V1__REQUEST__OPERATION_##name

struct decoding {
    struct aster_bytes caller;
    const struct aster_limits *limits;
    struct aster_scratch *scratch;
};

static aster_status set_id(ProtobufCBinaryData id, unsigned char request_id[ASTER_REQUEST_ID_SIZE],
                           struct aster_error *error)
{
    if (id.len != 0 && id.len != ASTER_REQUEST_ID_SIZE) {
        return aster_error_set(error, ASTER_ERR_INVALID, "request_id is %zu bytes: give %d random bytes or none",
                               id.len, ASTER_REQUEST_ID_SIZE);
    }
    if (id.len != 0) {
        memcpy(request_id, id.data, id.len);
    }
    return ASTER_OK;
}

static struct aster_operation operation_of(enum aster_operation_kind kind, ProtobufCBinaryData resource,
                                           struct aster_bytes caller)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_from_binary(resource);
    operation.caller = caller;
    return operation;
}

static aster_status read_renew(const Aster__Lease__V1__Renew *renew, const struct decoding *decoding,
                               struct aster_operation *operation, struct aster_error *error)
{
    *operation = operation_of(ASTER_OP_RENEW, renew->resource, decoding->caller);
    operation->epoch = renew->epoch;
    aster_status status = set_id(renew->request_id, operation->request_id, error);
    return status == ASTER_OK ? aster_operation_check(operation, decoding->limits, error) : status;
}

static aster_status read_release(const Aster__Lease__V1__Release *release, struct aster_bytes caller,
                                 struct aster_operation *operation, struct aster_error *error)
{
    if (!release->with_value && (release->value.len != 0 || release->value_revision != 0)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "release has a value but with_value is not set: set it or send no value");
    }
    *operation = operation_of(ASTER_OP_RELEASE, release->resource, caller);
    operation->epoch = release->epoch;
    operation->flags = release->with_value ? ASTER_OP_WITH_VALUE : 0;
    operation->value_revision = release->value_revision;
    operation->value = aster_from_binary(release->value);
    return set_id(release->request_id, operation->request_id, error);
}

static aster_status read_revoke(const Aster__Lease__V1__Revoke *revoke, struct aster_bytes caller,
                                struct aster_operation *operation, struct aster_error *error)
{
    if (!revoke->expect_epoch && revoke->epoch != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "revoke has an epoch but expect_epoch is not set: set it or send no epoch");
    }
    *operation = operation_of(ASTER_OP_REVOKE, revoke->resource, caller);
    operation->epoch = revoke->epoch;
    operation->flags = revoke->expect_epoch ? ASTER_OP_EXPECT_EPOCH : 0;
    return set_id(revoke->request_id, operation->request_id, error);
}

static aster_status read_acquire(const Aster__Lease__V1__Acquire *acquire, struct aster_bytes caller,
                                 struct aster_call *call, struct aster_error *error)
{
    struct aster_operation *operation = &call->one.operation;
    *operation = operation_of(ASTER_OP_ACQUIRE, acquire->resource, caller);
    operation->ttl_ms = acquire->ttl_ms;
    operation->flags = acquire->take_over_own ? ASTER_OP_TAKE_OVER_OWN : 0;
    call->one.wait_ms = acquire->wait_ms;
    return set_id(acquire->request_id, operation->request_id, error);
}

static aster_status read_put(const Aster__Lease__V1__Put *put, struct aster_bytes caller,
                             struct aster_operation *operation, struct aster_error *error)
{
    *operation = operation_of(ASTER_OP_PUT, put->resource, caller);
    operation->epoch = put->epoch;
    operation->holder = aster_from_binary(put->holder);
    operation->value_revision = put->value_revision;
    operation->value = aster_from_binary(put->value);
    return set_id(put->request_id, operation->request_id, error);
}

static aster_status read_one(const Aster__Lease__V1__Request *request, const struct decoding *decoding,
                             struct aster_call *call, struct aster_error *error)
{
    struct aster_bytes caller = decoding->caller;
    struct aster_operation *operation = &call->one.operation;
    aster_status status = ASTER_OK;
    call->kind = ASTER_CALL_OPERATION;
    call->one.wait_ms = 0;
    switch (request->operation_case) {
    case CASE(ACQUIRE):
        status = read_acquire(request->acquire, caller, call, error);
        break;
    case CASE(RENEW):
        return read_renew(request->renew, decoding, operation, error);
    case CASE(RELEASE):
        status = read_release(request->release, caller, operation, error);
        break;
    case CASE(REVOKE):
        status = read_revoke(request->revoke, caller, operation, error);
        break;
    case CASE(PUT):
        status = read_put(request->put, caller, operation, error);
        break;
    case CASE(FORGET):
        *operation = operation_of(ASTER_OP_FORGET, request->forget->resource, caller);
        status = set_id(request->forget->request_id, operation->request_id, error);
        break;
    case CASE(INSPECT):
        *operation = operation_of(ASTER_OP_INSPECT, request->inspect->resource, caller);
        break;
    default:
        return aster_nodes_call_read(request, decoding->scratch, call, error);
    }
    return status == ASTER_OK ? aster_operation_check(operation, decoding->limits, error) : status;
}

static aster_status read_many(const Aster__Lease__V1__RenewMany *many, const struct decoding *decoding,
                              struct aster_call *call, struct aster_error *error)
{
    if (many->n_leases < 1 || many->n_leases > ASTER_WIRE_RENEW_MANY_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%zu renewals in one message, allowed are 1 to %d: split them",
                               many->n_leases, ASTER_WIRE_RENEW_MANY_MAX);
    }
    call->kind = ASTER_CALL_RENEW_MANY;
    call->many.count = many->n_leases;
    call->many.operations = aster_scratch_take(decoding->scratch, many->n_leases * sizeof *call->many.operations);
    if (call->many.operations == NULL) {
        return aster_scratch_full(error);
    }
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < many->n_leases; i++) {
        status = read_renew(many->leases[i], decoding, &call->many.operations[i], error);
    }
    return status;
}

static aster_status read_hello(const Aster__Lease__V1__Hello *hello, struct aster_call *call, struct aster_error *error)
{
    if (hello->version < 1) {
        return aster_error_set(error, ASTER_ERR_INVALID, "hello has version 0: versions start at 1");
    }
    if (hello->agent.len > ASTER_WIRE_AGENT_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "agent is %zu bytes long, the limit is %d: shorten it",
                               hello->agent.len, ASTER_WIRE_AGENT_MAX);
    }
    call->kind = ASTER_CALL_HELLO;
    call->hello.version = hello->version;
    call->hello.agent = aster_from_binary(hello->agent);
    return hello->agent.len == 0 ? ASTER_OK : aster_identity_check(call->hello.agent, "agent", error);
}

/* Empty stands for "all". */
static aster_status check_filter(struct aster_bytes name, struct aster_error *error)
{
    return name.size == 0 ? ASTER_OK : aster_resource_check(name, error);
}

static aster_status read_list(const Aster__Lease__V1__List *list, struct aster_call *call, struct aster_error *error)
{
    if (list->limit > ASTER_WIRE_ROWS_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "limit is %" PRIu32 " rows, allowed are 0 to %d: ask several times", list->limit,
                               ASTER_WIRE_ROWS_MAX);
    }
    call->kind = ASTER_CALL_LIST;
    call->list.prefix = aster_from_binary(list->prefix);
    call->list.after = aster_from_binary(list->after);
    call->list.limit = list->limit;
    aster_status status = check_filter(call->list.prefix, error);
    return status == ASTER_OK ? check_filter(call->list.after, error) : status;
}

static aster_status read_events(enum aster_call_kind kind, ProtobufCBinaryData resource, int64_t after_revision,
                                uint32_t limit, struct aster_call *call, struct aster_error *error)
{
    if (after_revision < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "after_revision is %" PRId64 ": it must be 0 or more",
                               after_revision);
    }
    call->kind = kind;
    call->events.resource = aster_from_binary(resource);
    call->events.after_revision = after_revision;
    call->events.limit = limit;
    return check_filter(call->events.resource, error);
}

static aster_status read_cancel(uint64_t id, struct aster_call *call, struct aster_error *error)
{
    if (id == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "cancel names no request: give the id of one that is unanswered");
    }
    call->kind = ASTER_CALL_CANCEL;
    call->cancel_id = id;
    return ASTER_OK;
}

static aster_status read_request(const Aster__Lease__V1__Request *request, const struct decoding *decoding,
                                 struct aster_call *call, struct aster_error *error)
{
    bool hello = request->operation_case == CASE(HELLO);
    if ((request->id == 0) != hello) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "request id is %" PRIu64 ": it is 0 for hello and not 0 for all else", request->id);
    }
    call->id = request->id;
    call->deadline_ms = request->deadline_ms;
    switch (request->operation_case) {
    case CASE(HELLO):
        return read_hello(request->hello, call, error);
    case CASE(RENEW_MANY):
        return read_many(request->renew_many, decoding, call, error);
    case CASE(LIST):
        return read_list(request->list, call, error);
    case CASE(HISTORY):
        return read_events(ASTER_CALL_HISTORY, request->history->resource, request->history->after_revision,
                           request->history->limit, call, error);
    case CASE(WATCH):
        return read_events(ASTER_CALL_WATCH, request->watch->resource, request->watch->after_revision, 0, call, error);
    case CASE(CANCEL):
        return read_cancel(request->cancel->id, call, error);
    default:
        return read_one(request, decoding, call, error);
    }
}

aster_status aster_call_decode(struct aster_bytes payload, struct aster_bytes caller, const struct aster_limits *limits,
                               struct aster_scratch *scratch, struct aster_call *call, uint64_t *id,
                               struct aster_error *error)
{
    struct aster_error local = ASTER_ERROR_INIT;
    struct aster_error *detail = error != NULL ? error : &local;
    *id = 0;
    const Aster__Lease__V1__Request *request =
        aster_message_unpack(&aster__lease__v1__request__descriptor, payload, scratch, detail);
    if (request == NULL) {
        return detail->status;
    }
    *id = request->id;
    struct aster_call read;
    memset(&read, 0, sizeof read);
    const struct decoding decoding = {caller, limits, scratch};
    aster_status status = read_request(request, &decoding, &read, detail);
    if (status == ASTER_OK) {
        *call = read;
    }
    return status;
}
