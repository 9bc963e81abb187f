/* Requests: golden bytes, round trips, and everything that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "wire/frame.h"
#include "wire/request.h"

static unsigned char memory[ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];
static struct aster_scratch scratch;
static const struct aster_limits limits = ASTER_LIMITS_INIT;
static struct aster_error error;

static struct aster_scratch *fresh(void)
{
    scratch = (struct aster_scratch){memory, sizeof memory, 0};
    return &scratch;
}

static size_t encoded(const struct aster_call *call)
{
    size_t length = 0;
    assert_int_equal(aster_call_encode(call, fresh(), wire, sizeof wire, &length, &error), ASTER_OK);
    return length;
}

static aster_status decode(const void *data, size_t size, struct aster_call *call, uint64_t *id)
{
    struct aster_bytes payload = {data, size};
    return aster_call_decode(payload, aster_text("peer"), &limits, fresh(), call, id, &error);
}

static struct aster_call operation_call(enum aster_operation_kind kind)
{
    struct aster_call call = {.id = 7, .deadline_ms = 250, .kind = ASTER_CALL_OPERATION};
    call.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    call.one.operation.kind = kind;
    call.one.operation.resource = aster_text("catalog");
    call.one.operation.caller = aster_text("somebody else"); /* must not travel */
    memcpy(call.one.operation.request_id, "0123456789abcdef", 16);
    return call;
}

static void an_acquire_has_these_bytes(void **state)
{
    (void)state;
    struct aster_call call = operation_call(ASTER_OP_ACQUIRE);
    call.one.operation.ttl_ms = 30000;
    call.one.operation.flags = ASTER_OP_TAKE_OVER_OWN;
    call.one.wait_ms = 5000;
    static const char golden[] = "\x08\x07\x10\xfa\x01\x22\x24\x0a\x07"
                                 "catalog\x10\xb0\xea\x01\x18\x88\x27\x20\x01\x2a\x10"
                                 "0123456789abcdef";
    assert_int_equal(encoded(&call), sizeof golden - 1);
    assert_memory_equal(wire, golden, sizeof golden - 1);
}

static void a_renewal_has_these_bytes(void **state)
{
    (void)state;
    struct aster_call call = operation_call(ASTER_OP_RENEW);
    call.deadline_ms = 0;
    call.one.operation.epoch = 3;
    memset(call.one.operation.request_id, 0, 16);
    static const char golden[] = "\x08\x07\x2a\x0b\x0a\x07"
                                 "catalog\x10\x03";
    assert_int_equal(encoded(&call), sizeof golden - 1);
    assert_memory_equal(wire, golden, sizeof golden - 1);
}

static void every_operation_comes_back_with_the_connections_identity_as_its_caller(void **state)
{
    (void)state;
    static const enum aster_operation_kind kinds[] = {ASTER_OP_ACQUIRE, ASTER_OP_RENEW, ASTER_OP_RELEASE,
                                                      ASTER_OP_REVOKE,  ASTER_OP_PUT,   ASTER_OP_FORGET,
                                                      ASTER_OP_INSPECT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct aster_call call = operation_call(kinds[i]);
        struct aster_operation *sent = &call.one.operation;
        sent->ttl_ms = kinds[i] == ASTER_OP_ACQUIRE ? 4000 : 0;
        bool epoch = kinds[i] == ASTER_OP_RENEW || kinds[i] == ASTER_OP_RELEASE || kinds[i] == ASTER_OP_REVOKE ||
                     kinds[i] == ASTER_OP_PUT;
        bool value = kinds[i] == ASTER_OP_PUT || kinds[i] == ASTER_OP_RELEASE;
        sent->epoch = epoch ? INT64_MAX : 0;
        sent->value_revision = value ? 9 : 0;
        sent->value = value ? aster_text("v") : (struct aster_bytes){NULL, 0};
        sent->holder = kinds[i] == ASTER_OP_PUT ? aster_text("w1") : (struct aster_bytes){NULL, 0};
        sent->flags = kinds[i] == ASTER_OP_RELEASE  ? ASTER_OP_WITH_VALUE
                      : kinds[i] == ASTER_OP_REVOKE ? ASTER_OP_EXPECT_EPOCH
                                                    : 0;
        size_t length = encoded(&call);
        assert_null(memmem(wire, length, "somebody", 8));
        struct aster_call got;
        uint64_t id;
        assert_int_equal(decode(wire, length, &got, &id), ASTER_OK);
        const struct aster_operation *operation = &got.one.operation;
        assert_int_equal(got.kind, ASTER_CALL_OPERATION);
        assert_int_equal(id, 7);
        assert_int_equal(got.deadline_ms, 250);
        assert_int_equal(operation->kind, kinds[i]);
        assert_true(aster_bytes_equal(operation->caller, aster_text("peer")));
        assert_true(aster_bytes_equal(operation->resource, sent->resource));
        assert_true(aster_bytes_equal(operation->value, sent->value));
        assert_true(aster_bytes_equal(operation->holder, sent->holder));
        assert_int_equal(operation->epoch, sent->epoch);
        assert_int_equal(operation->ttl_ms, sent->ttl_ms);
        assert_int_equal(operation->value_revision, sent->value_revision);
        assert_int_equal(operation->flags, sent->flags);
        if (kinds[i] != ASTER_OP_INSPECT) {
            assert_memory_equal(operation->request_id, sent->request_id, 16);
        }
    }
}

static void the_largest_batch_of_renewals_comes_back(void **state)
{
    (void)state;
    static struct aster_operation operations[ASTER_WIRE_RENEW_MANY_MAX];
    char name[100];
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < ASTER_WIRE_RENEW_MANY_MAX; i++) {
        operations[i] = (struct aster_operation)ASTER_OPERATION_INIT;
        operations[i].kind = ASTER_OP_RENEW;
        operations[i].resource = (struct aster_bytes){name, sizeof name};
        operations[i].epoch = (int64_t)i;
    }
    struct aster_call call = {.id = 1, .kind = ASTER_CALL_RENEW_MANY};
    call.many.operations = operations;
    call.many.count = ASTER_WIRE_RENEW_MANY_MAX;
    size_t length = encoded(&call);
    struct aster_call got;
    uint64_t id;
    assert_int_equal(decode(wire, length, &got, &id), ASTER_OK);
    assert_int_equal(got.many.count, ASTER_WIRE_RENEW_MANY_MAX);
    assert_int_equal(got.many.operations[1023].epoch, 1023);
    assert_true(aster_bytes_equal(got.many.operations[1023].caller, aster_text("peer")));
    call.many.count = 0;
    size_t unused;
    assert_int_equal(aster_call_encode(&call, fresh(), wire, sizeof wire, &unused, &error), ASTER_ERR_INVALID);
}

static void the_other_calls_come_back(void **state)
{
    (void)state;
    struct aster_call got;
    uint64_t id;
    struct aster_call hello = {.kind = ASTER_CALL_HELLO};
    hello.hello.version = 1;
    hello.hello.agent = aster_text("aster/0.1.0");
    assert_int_equal(decode(wire, encoded(&hello), &got, &id), ASTER_OK);
    assert_true(aster_bytes_equal(got.hello.agent, aster_text("aster/0.1.0")));

    struct aster_call list = {.id = 2, .kind = ASTER_CALL_LIST};
    list.list.prefix = aster_text("a/");
    list.list.after = aster_text("a/b");
    list.list.limit = 10;
    assert_int_equal(decode(wire, encoded(&list), &got, &id), ASTER_OK);
    assert_true(aster_bytes_equal(got.list.after, aster_text("a/b")));
    assert_int_equal(got.list.limit, 10);

    struct aster_call watch = {.id = 3, .kind = ASTER_CALL_WATCH};
    watch.events.after_revision = 88;
    assert_int_equal(decode(wire, encoded(&watch), &got, &id), ASTER_OK);
    assert_int_equal(got.kind, ASTER_CALL_WATCH);
    assert_int_equal(got.events.after_revision, 88);
    assert_int_equal(got.events.resource.size, 0);

    struct aster_call history = {.id = 3, .kind = ASTER_CALL_HISTORY};
    history.events.resource = aster_text("r");
    history.events.limit = 5;
    assert_int_equal(decode(wire, encoded(&history), &got, &id), ASTER_OK);
    assert_int_equal(got.events.limit, 5);

    struct aster_call cancel = {.id = 4, .kind = ASTER_CALL_CANCEL};
    cancel.cancel_id = 3;
    assert_int_equal(decode(wire, encoded(&cancel), &got, &id), ASTER_OK);
    assert_int_equal(got.cancel_id, 3);
}

static void refused(const void *data, size_t size, aster_status expected, uint64_t expected_id, const char *word)
{
    struct aster_call got;
    memset(&got, 0x5a, sizeof got);
    struct aster_call before = got;
    uint64_t id = 99;
    assert_int_equal(decode(data, size, &got, &id), expected);
    assert_int_equal(id, expected_id);
    assert_memory_equal(&got, &before, sizeof got);
    assert_non_null(strstr(error.message, word));
}

#define REFUSED(bytes, expected, id, word) refused(bytes, sizeof bytes - 1, expected, id, word)

static void what_breaks_a_rule_is_refused_with_the_id_and_the_reason(void **state)
{
    (void)state;
    REFUSED("\xff\xff\xff", ASTER_ERR_INVALID, 0, "protobuf");
    REFUSED("\x08\x07", ASTER_ERR_UNSUPPORTED, 7, "operation");
    REFUSED("\x08\x07\xfa\x01\x00", ASTER_ERR_UNSUPPORTED, 7, "operation");   /* a oneof member from the future */
    REFUSED("\x52\x03\x0a\x01r", ASTER_ERR_INVALID, 0, "request id");         /* inspect without an id */
    REFUSED("\x08\x07\x52\x00", ASTER_ERR_INVALID, 7, "resource is empty");   /* absent name */
    REFUSED("\x08\x07\x52\x03\x0a\x01\x00", ASTER_ERR_INVALID, 7, "control"); /* NUL in a name */
    REFUSED("\x08\x07\x52\x03\x0a\x01\xff", ASTER_ERR_INVALID, 7, "UTF-8");
    REFUSED("\x08\x07\x22\x03\x0a\x01r", ASTER_ERR_INVALID, 7, "ttl is 0"); /* absent ttl */
    REFUSED("\x08\x07\x2a\x0e\x0a\x01r\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ASTER_ERR_INVALID, 7,
            "epoch is -1");
    REFUSED("\x08\x07\x2a\x07\x0a\x01r\x1a\x02xx", ASTER_ERR_INVALID, 7, "request_id is 2 bytes");
    REFUSED("\x08\x07\x1a\x02\x08\x01", ASTER_ERR_INVALID, 7, "0 for hello"); /* hello with an id */
    REFUSED("\x1a\x00", ASTER_ERR_INVALID, 0, "version 0");
    REFUSED("\x08\x07\x5a\x00", ASTER_ERR_INVALID, 7, "0 renewals");
    REFUSED("\x08\x07\x7a\x00", ASTER_ERR_INVALID, 7, "cancel");
    REFUSED("\x08\x07\x62\x03\x18\x81\x08", ASTER_ERR_INVALID, 7, "1025 rows");
    REFUSED("\x08\x07\x32\x06\x0a\x01r\x32\x01v", ASTER_ERR_INVALID, 7, "with_value");
    REFUSED("\x08\x07\x3a\x05\x0a\x01r\x18\x05", ASTER_ERR_INVALID, 7, "expect_epoch");
    REFUSED("\x08\x07\x42\x05\x0a\x01r\x10\x01", ASTER_ERR_INVALID, 7, "holder of the fence");
}

static void more_renewals_than_allowed_cost_no_more_than_the_scratch(void **state)
{
    (void)state;
    size_t count = 60000; /* two bytes each: the most that a frame can hold */
    unsigned char *flood = malloc(2 * count + 16);
    assert_non_null(flood);
    size_t at = 0;
    flood[at++] = 0x08;
    flood[at++] = 0x07;
    flood[at++] = 0x5a;
    size_t inner = 2 * count;
    flood[at++] = (unsigned char)(0x80 | (inner & 0x7f));
    flood[at++] = (unsigned char)(0x80 | (inner >> 7 & 0x7f));
    flood[at++] = (unsigned char)(inner >> 14);
    for (size_t i = 0; i < count; i++) {
        flood[at++] = 0x0a;
        flood[at++] = 0x00;
    }
    struct aster_call got;
    uint64_t id;
    assert_int_equal(decode(flood, at, &got, &id), ASTER_ERR_LIMIT);
    free(flood);
}

static void only_a_serializer_says_that_a_lease_expired(void **state)
{
    (void)state;
    struct aster_call call = operation_call(ASTER_OP_EXPIRE);
    size_t length;
    assert_int_equal(aster_call_encode(&call, fresh(), wire, sizeof wire, &length, &error), ASTER_ERR_INVALID);
    call = operation_call(ASTER_OP_ACQUIRE);
    call.one.operation.flags = ASTER_OP_EXPIRED_VERDICT;
    assert_int_equal(aster_call_encode(&call, fresh(), wire, sizeof wire, &length, &error), ASTER_ERR_INVALID);
}

/* The only identity in any request is the one inside a fence that is to be checked. */
static void no_request_has_a_field_for_the_caller(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *request = &aster__lease__v1__request__descriptor;
    for (unsigned i = 0; i < request->n_fields; i++) {
        if (request->fields[i].type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        const ProtobufCMessageDescriptor *operation = request->fields[i].descriptor;
        for (unsigned k = 0; k < operation->n_fields; k++) {
            static const char *const forbidden[] = {"caller",   "candidate", "writer", "authority",
                                                    "identity", "actor",     "owner"};
            for (size_t f = 0; f < sizeof forbidden / sizeof forbidden[0]; f++) {
                assert_null(strstr(operation->fields[k].name, forbidden[f]));
            }
            if (strcmp(operation->fields[k].name, "holder") == 0) {
                assert_string_equal(operation->short_name, "Put");
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acquire_has_these_bytes),
        cmocka_unit_test(a_renewal_has_these_bytes),
        cmocka_unit_test(every_operation_comes_back_with_the_connections_identity_as_its_caller),
        cmocka_unit_test(the_largest_batch_of_renewals_comes_back),
        cmocka_unit_test(the_other_calls_come_back),
        cmocka_unit_test(what_breaks_a_rule_is_refused_with_the_id_and_the_reason),
        cmocka_unit_test(more_renewals_than_allowed_cost_no_more_than_the_scratch),
        cmocka_unit_test(only_a_serializer_says_that_a_lease_expired),
        cmocka_unit_test(no_request_has_a_field_for_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
