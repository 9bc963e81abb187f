#include "wire/request.h"

#include <inttypes.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"

#define CASE(name) ASTER__LEASE__V1__REQUEST__OPERATION_##name

/* ---- encode ---- */

/* All zero stands for "no protection" and is sent as an absent field. */
static ProtobufCBinaryData id_to_binary(const unsigned char *request_id)
{
    static const unsigned char none[ASTER_REQUEST_ID_SIZE];
    bool absent = memcmp(request_id, none, sizeof none) == 0;
    return aster_to_binary((struct aster_bytes){request_id, absent ? 0 : ASTER_REQUEST_ID_SIZE});
}

static void fill_renew(const struct aster_operation *operation, Aster__Lease__V1__Renew *renew)
{
    aster__lease__v1__renew__init(renew);
    renew->resource = aster_to_binary(operation->resource);
    renew->epoch = operation->epoch;
    renew->request_id = id_to_binary(operation->request_id);
}

union operation_message {
    Aster__Lease__V1__Acquire acquire;
    Aster__Lease__V1__Renew renew;
    Aster__Lease__V1__Release release;
    Aster__Lease__V1__Revoke revoke;
    Aster__Lease__V1__Put put;
    Aster__Lease__V1__Forget forget;
    Aster__Lease__V1__Inspect inspect;
};

static void fill_acquire(const struct aster_call *call, Aster__Lease__V1__Acquire *acquire)
{
    const struct aster_operation *operation = &call->one.operation;
    aster__lease__v1__acquire__init(acquire);
    acquire->resource = aster_to_binary(operation->resource);
    acquire->ttl_ms = operation->ttl_ms;
    acquire->wait_ms = call->one.wait_ms;
    acquire->take_over_own = (operation->flags & ASTER_OP_TAKE_OVER_OWN) != 0;
    acquire->request_id = id_to_binary(operation->request_id);
}

static void fill_release(const struct aster_operation *operation, Aster__Lease__V1__Release *release)
{
    aster__lease__v1__release__init(release);
    release->resource = aster_to_binary(operation->resource);
    release->epoch = operation->epoch;
    release->request_id = id_to_binary(operation->request_id);
    release->with_value = (operation->flags & ASTER_OP_WITH_VALUE) != 0;
    if (release->with_value) {
        release->value_revision = operation->value_revision;
        release->value = aster_to_binary(operation->value);
    }
}

static void fill_revoke(const struct aster_operation *operation, Aster__Lease__V1__Revoke *revoke)
{
    aster__lease__v1__revoke__init(revoke);
    revoke->resource = aster_to_binary(operation->resource);
    revoke->expect_epoch = (operation->flags & ASTER_OP_EXPECT_EPOCH) != 0;
    revoke->epoch = revoke->expect_epoch ? operation->epoch : 0;
    revoke->request_id = id_to_binary(operation->request_id);
}

static void fill_put(const struct aster_operation *operation, Aster__Lease__V1__Put *put)
{
    aster__lease__v1__put__init(put);
    put->resource = aster_to_binary(operation->resource);
    put->epoch = operation->epoch;
    put->holder = aster_to_binary(operation->holder);
    put->value_revision = operation->value_revision;
    put->value = aster_to_binary(operation->value);
    put->request_id = id_to_binary(operation->request_id);
}

static aster_status fill_operation(const struct aster_call *call, union operation_message *message,
                                   Aster__Lease__V1__Request *request, struct aster_error *error)
{
    const struct aster_operation *operation = &call->one.operation;
    switch (operation->kind) {
    case ASTER_OP_ACQUIRE:
        fill_acquire(call, &message->acquire);
        request->operation_case = CASE(ACQUIRE);
        break;
    case ASTER_OP_RENEW:
        fill_renew(operation, &message->renew);
        request->operation_case = CASE(RENEW);
        break;
    case ASTER_OP_RELEASE:
        fill_release(operation, &message->release);
        request->operation_case = CASE(RELEASE);
        break;
    case ASTER_OP_REVOKE:
        fill_revoke(operation, &message->revoke);
        request->operation_case = CASE(REVOKE);
        break;
    case ASTER_OP_PUT:
        fill_put(operation, &message->put);
        request->operation_case = CASE(PUT);
        break;
    case ASTER_OP_FORGET:
        aster__lease__v1__forget__init(&message->forget);
        message->forget.resource = aster_to_binary(operation->resource);
        message->forget.request_id = id_to_binary(operation->request_id);
        request->operation_case = CASE(FORGET);
        break;
    case ASTER_OP_INSPECT:
        aster__lease__v1__inspect__init(&message->inspect);
        message->inspect.resource = aster_to_binary(operation->resource);
        request->operation_case = CASE(INSPECT);
        break;
    default:
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is not sent over the wire: only a serializer issues it",
                               aster_operation_name(operation->kind));
    }
    if (operation->flags & ASTER_OP_EXPIRED_VERDICT) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "an expiry verdict is not sent over the wire: only a serializer gives it");
    }
    request->acquire = &message->acquire; /* the union's members share their place */
    return ASTER_OK;
}

static aster_status encode_one(const struct aster_call *call, Aster__Lease__V1__Request *request, void *data,
                               size_t size, size_t *length, struct aster_error *error)
{
    union operation_message message;
    aster_status status = fill_operation(call, &message, request, error);
    return status == ASTER_OK ? aster_message_pack(&request->base, data, size, length, error) : status;
}

static aster_status encode_many(const struct aster_call *call, Aster__Lease__V1__Request *request,
                                struct aster_scratch *scratch, void *data, size_t size, size_t *length,
                                struct aster_error *error)
{
    size_t count = call->many.count;
    if (count < 1 || count > ASTER_WIRE_RENEW_MANY_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%zu renewals in one message, allowed are 1 to %d: split them",
                               count, ASTER_WIRE_RENEW_MANY_MAX);
    }
    Aster__Lease__V1__Renew *leases = aster_scratch_take(scratch, count * sizeof *leases);
    Aster__Lease__V1__Renew **pointers = aster_scratch_take(scratch, count * sizeof(void *));
    if (leases == NULL || pointers == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < count; i++) {
        fill_renew(&call->many.operations[i], &leases[i]);
        pointers[i] = &leases[i];
    }
    Aster__Lease__V1__RenewMany many = ASTER__LEASE__V1__RENEW_MANY__INIT;
    many.n_leases = count;
    many.leases = pointers;
    request->operation_case = CASE(RENEW_MANY);
    request->renew_many = &many;
    return aster_message_pack(&request->base, data, size, length, error);
}

static aster_status encode_other(const struct aster_call *call, Aster__Lease__V1__Request *request, void *data,
                                 size_t size, size_t *length, struct aster_error *error)
{
    Aster__Lease__V1__Hello hello = ASTER__LEASE__V1__HELLO__INIT;
    Aster__Lease__V1__List list = ASTER__LEASE__V1__LIST__INIT;
    Aster__Lease__V1__History history = ASTER__LEASE__V1__HISTORY__INIT;
    Aster__Lease__V1__Watch watch = ASTER__LEASE__V1__WATCH__INIT;
    Aster__Lease__V1__Cancel cancel = ASTER__LEASE__V1__CANCEL__INIT;
    switch (call->kind) {
    case ASTER_CALL_HELLO:
        hello.version = call->hello.version;
        hello.agent = aster_to_binary(call->hello.agent);
        request->operation_case = CASE(HELLO);
        request->hello = &hello;
        break;
    case ASTER_CALL_LIST:
        list.prefix = aster_to_binary(call->list.prefix);
        list.after = aster_to_binary(call->list.after);
        list.limit = call->list.limit;
        request->operation_case = CASE(LIST);
        request->list = &list;
        break;
    case ASTER_CALL_HISTORY:
        history.resource = aster_to_binary(call->events.resource);
        history.after_revision = call->events.after_revision;
        history.limit = call->events.limit;
        request->operation_case = CASE(HISTORY);
        request->history = &history;
        break;
    case ASTER_CALL_WATCH:
        watch.resource = aster_to_binary(call->events.resource);
        watch.after_revision = call->events.after_revision;
        request->operation_case = CASE(WATCH);
        request->watch = &watch;
        break;
    case ASTER_CALL_CANCEL:
        cancel.id = call->cancel_id;
        request->operation_case = CASE(CANCEL);
        request->cancel = &cancel;
        break;
    default:
        return aster_error_set(error, ASTER_ERR_INVALID, "call kind %d is unknown", (int)call->kind);
    }
    return aster_message_pack(&request->base, data, size, length, error);
}

aster_status aster_call_encode(const struct aster_call *call, struct aster_scratch *scratch, void *data, size_t size,
                               size_t *length, struct aster_error *error)
{
    Aster__Lease__V1__Request request = ASTER__LEASE__V1__REQUEST__INIT;
    request.id = call->id;
    request.deadline_ms = call->deadline_ms;
    switch (call->kind) {
    case ASTER_CALL_OPERATION:
        return encode_one(call, &request, data, size, length, error);
    case ASTER_CALL_RENEW_MANY:
        return encode_many(call, &request, scratch, data, size, length, error);
    case ASTER_CALL_NODE_ADD:
    case ASTER_CALL_NODE_ROLE:
    case ASTER_CALL_NODE_REMOVE:
    case ASTER_CALL_NODE_LIST:
    case ASTER_CALL_REQUIRE:
        return aster_nodes_call_encode(call, &request, scratch, data, size, length, error);
    default:
        return encode_other(call, &request, data, size, length, error);
    }
}
