/* What is sent a second time, after a connection was lost: what may be said about it, what is not sent, in which order.
 */
#include "support/unit.h"

#include <unistd.h>

#include "aster/sys/serializer.h"
#include "support/quic_relay.h"
#include "support/quic_side.h"
#include "support/remote_grantor.h"

static struct remote_grantor grantor;
static struct remote_client client;
static struct aster_relay relay;
static struct aster_reply reply;
static struct aster_error error;

static int open_all(void **state)
{
    (void)state;
    remote_grantor_init(&grantor, NULL);
    remote_grantor_start(&grantor, REMOTE_QUIC, 0);
    remote_client_init(&client);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    aster_reply_fini(&reply);
    remote_client_fini(&client);
    remote_grantor_fini(&grantor);
    return 0;
}

static void open_client_at(const struct aster_address *address)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.addresses = aster_address_text(address, text);
    options.idle_timeout_ms = 600;
    options.without_tcp = true;
    remote_client_open(&client, &options);
}

static struct aster_operation op(enum aster_operation_kind kind, int64_t epoch)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text("catalog");
    operation.caller = aster_text(client.id);
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    operation.epoch = epoch;
    return operation;
}

static aster_status call(const struct aster_operation *operation, int64_t timeout_ms)
{
    error = (struct aster_error)ASTER_ERROR_INIT;
    return aster_serializer_call(client.serializer, operation, timeout_ms, &reply, &error);
}

static void expect_granted(const struct aster_operation *operation, int64_t epoch)
{
    if (call(operation, 10000) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    assert_int_equal(reply.decision.epoch, epoch);
}

static void lost_replies_are_asked_for_again_and_have_one_effect(void **state)
{
    (void)state;
    open_client_at(&grantor.bound);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    atomic_store(&grantor.lose_reply_to, ASTER_OP_ACQUIRE);
    expect_granted(&operation, 1);
    assert_true(reply.decision.replayed);
    assert_int_equal(atomic_load(&grantor.links), 2);

    operation = op(ASTER_OP_PUT, 1);
    operation.holder = operation.caller;
    operation.value = aster_text("value");
    atomic_store(&grantor.lose_reply_to, ASTER_OP_PUT);
    expect_granted(&operation, 1);
    assert_true(reply.decision.replayed);
    assert_int_equal(reply.decision.snapshot.value_revision, 1);

    operation = op(ASTER_OP_RELEASE, 1);
    atomic_store(&grantor.lose_reply_to, ASTER_OP_RELEASE);
    expect_granted(&operation, 2);
    assert_true(reply.decision.replayed);
    assert_int_equal(atomic_load(&grantor.lose_reply_to), 0);
    assert_true(remote_client_logged(&client, "connection lost"));
}

static void a_renewal_whose_reply_was_lost_goes_on(void **state)
{
    (void)state;
    open_client_at(&grantor.bound);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    operation = op(ASTER_OP_RENEW, 1);
    atomic_store(&grantor.lose_reply_to, ASTER_OP_RENEW);
    expect_granted(&operation, 1);
}

/* The grantor decides, the reply is lost, and the repetition is answered with an error. */
static aster_status call_with_an_error_after_a_lost_reply(const struct aster_operation *operation, aster_status status)
{
    atomic_store(&grantor.refuse_with, status);
    atomic_store(&grantor.lose_reply_to, operation->kind);
    return call(operation, 10000);
}

static void an_error_for_the_second_sending_says_nothing_about_the_first(void **state)
{
    (void)state;
    static const aster_status failures[] = {ASTER_ERR_TIMEOUT, ASTER_ERR_LIMIT, ASTER_ERR_CLOSED, ASTER_ERR_CANCELLED};
    open_client_at(&grantor.bound);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        operation = op(ASTER_OP_PUT, 1);
        operation.holder = operation.caller;
        operation.value = aster_text("value");
        operation.value_revision = (int64_t)i;
        operation.request_id[0] = (unsigned char)(i + 1);
        assert_int_equal(call_with_an_error_after_a_lost_reply(&operation, failures[i]), ASTER_ERR_INDETERMINATE);
        assert_non_null(strstr(error.message, "refused by the test"));
        assert_non_null(strstr(error.message, aster_status_name(failures[i])));
        expect_granted(&operation, 1);
        assert_true(reply.decision.replayed); /* it had indeed been applied */
    }
    /* What was sent once, or changes nothing, keeps its definite error. */
    atomic_store(&grantor.refuse_with, ASTER_ERR_TIMEOUT);
    operation.request_id[0] = 100;
    assert_int_equal(call(&operation, 10000), ASTER_ERR_TIMEOUT);
    operation = op(ASTER_OP_INSPECT, 0);
    assert_int_equal(call_with_an_error_after_a_lost_reply(&operation, ASTER_ERR_LIMIT), ASTER_ERR_LIMIT);
}

/* A request that this thread does not wait for. */
struct sent {
    struct aster_request request;
    atomic_int answers;
    atomic_int status;
    enum aster_reason reason;
};

static void on_answer(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                      const struct aster_error *failure)
{
    (void)failure;
    struct sent *sent = request->user;
    sent->reason = decision != NULL ? decision->reason : ASTER_REASON_NONE;
    atomic_store(&sent->status, status);
    atomic_fetch_add(&sent->answers, 1);
}

static void send_operation(struct sent *sent, const struct aster_operation *operation, int64_t wait_ms)
{
    memset(sent, 0, sizeof *sent);
    sent->request = (struct aster_request)ASTER_REQUEST_INIT;
    sent->request.operation = *operation;
    sent->request.complete = on_answer;
    sent->request.user = sent;
    if (wait_ms > 0) {
        sent->request.wait_until_ns = aster_clock_now_ns(aster_clock_system()) + wait_ms * 1000000;
    }
    aster_serializer_submit(client.serializer, &sent->request);
}

static void await(atomic_uint *counter, unsigned value)
{
    while (atomic_load(counter) < value) {
        usleep(1000);
    }
}

static void a_cancelled_wait_is_not_sent_again(void **state)
{
    (void)state;
    struct sent waiting;
    open_client_at(&grantor.bound);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    send_operation(&waiting, &operation, 60000);
    await(&grantor.requests, 2);
    atomic_store(&grantor.silent, true); /* the cancel is not answered before the connection is lost */
    aster_serializer_cancel(client.serializer, &waiting.request);
    await(&grantor.cancels, 1);
    uint16_t port = aster_address_port(&grantor.bound);
    remote_grantor_stop(&grantor);
    atomic_store(&grantor.silent, false);
    remote_grantor_start(&grantor, REMOTE_QUIC, port);
    while (atomic_load(&waiting.answers) == 0) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&waiting.status), ASTER_ERR_INDETERMINATE);
    operation = op(ASTER_OP_RELEASE, 1);
    expect_granted(&operation, 2); /* what is sent again goes first */
    assert_int_equal(atomic_load(&grantor.requests), 3);
    assert_int_equal(aster_inspect(grantor.serializer, aster_text("catalog"), &reply, &error), ASTER_OK);
    assert_false(reply.decision.snapshot.held);
    assert_int_equal(atomic_load(&waiting.answers), 1);
}

#define PUTS 24

static void what_is_sent_again_keeps_its_order(void **state)
{
    (void)state;
    static struct sent puts[PUTS];
    quic_relay_start(&relay, &grantor.bound);
    open_client_at(&relay.address);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    for (size_t i = 0; i < PUTS; i++) {
        operation = op(ASTER_OP_PUT, 1);
        operation.holder = operation.caller;
        operation.value = aster_text("value");
        operation.value_revision = (int64_t)i; /* granted only after the one before it */
        send_operation(&puts[i], &operation, 0);
    }
    while (!remote_client_logged(&client, "connection lost")) {
        usleep(10000);
    }
    assert_int_equal(atomic_load(&grantor.requests), 1);
    atomic_store(&relay.dark, 0);
    for (size_t i = 0; i < PUTS; i++) {
        while (atomic_load(&puts[i].answers) == 0) {
            usleep(1000);
        }
        assert_int_equal(atomic_load(&puts[i].status), ASTER_OK);
        assert_int_equal(puts[i].reason, ASTER_REASON_NONE);
    }
    aster_relay_stop(&relay);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lost_replies_are_asked_for_again_and_have_one_effect),
        TEST(a_renewal_whose_reply_was_lost_goes_on),
        TEST(an_error_for_the_second_sending_says_nothing_about_the_first),
        TEST(a_cancelled_wait_is_not_sent_again),
        TEST(what_is_sent_again_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
