/* What is sent a second time, after a connection was lost: what may be said about it, what is not sent, in which order.
 */
#include "support/unit.h"

#include <unistd.h>

#include "aster/sys/serializer.h"
#include "support/quic_side.h"
#include "support/remote_world.h"

static struct remote_world world;

static int open_all(void **state)
{
    (void)state;
    remote_world_init(&world);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    remote_world_fini(&world);
    return 0;
}

static void lost_replies_are_asked_for_again_and_have_one_effect(void **state)
{
    (void)state;
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    atomic_store(&world.grantor.lose_reply_to, ASTER_OP_ACQUIRE);
    remote_world_expect(&world, &operation, 1);
    assert_true(world.reply.decision.replayed);
    assert_int_equal(atomic_load(&world.grantor.links), 2);

    operation = remote_world_operation(&world, ASTER_OP_PUT, 1);
    operation.holder = operation.caller;
    operation.value = aster_text("value");
    atomic_store(&world.grantor.lose_reply_to, ASTER_OP_PUT);
    remote_world_expect(&world, &operation, 1);
    assert_true(world.reply.decision.replayed);
    assert_int_equal(world.reply.decision.snapshot.value_revision, 1);

    operation = remote_world_operation(&world, ASTER_OP_RELEASE, 1);
    atomic_store(&world.grantor.lose_reply_to, ASTER_OP_RELEASE);
    remote_world_expect(&world, &operation, 2);
    assert_true(world.reply.decision.replayed);
    assert_int_equal(atomic_load(&world.grantor.lose_reply_to), 0);
    assert_true(remote_client_logged(&world.client, "connection lost"));
}

static void a_renewal_whose_reply_was_lost_goes_on(void **state)
{
    (void)state;
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    operation = remote_world_operation(&world, ASTER_OP_RENEW, 1);
    atomic_store(&world.grantor.lose_reply_to, ASTER_OP_RENEW);
    remote_world_expect(&world, &operation, 1);
}

/* The grantor decides, the reply is lost, and the repetition is answered with an error. */
static aster_status call_with_an_error_after_a_lost_reply(const struct aster_operation *operation, aster_status status)
{
    atomic_store(&world.grantor.refuse_with, status);
    atomic_store(&world.grantor.lose_reply_to, operation->kind);
    return remote_world_call(&world, operation, 10000);
}

static void an_error_for_the_second_sending_says_nothing_about_the_first(void **state)
{
    (void)state;
    static const aster_status failures[] = {ASTER_ERR_TIMEOUT, ASTER_ERR_LIMIT, ASTER_ERR_CLOSED, ASTER_ERR_CANCELLED};
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        operation = remote_world_operation(&world, ASTER_OP_PUT, 1);
        operation.holder = operation.caller;
        operation.value = aster_text("value");
        operation.value_revision = (int64_t)i;
        operation.request_id[0] = (unsigned char)(i + 1);
        assert_int_equal(call_with_an_error_after_a_lost_reply(&operation, failures[i]), ASTER_ERR_INDETERMINATE);
        assert_non_null(strstr(world.error.message, "refused by the test"));
        assert_non_null(strstr(world.error.message, aster_status_name(failures[i])));
        remote_world_expect(&world, &operation, 1);
        assert_true(world.reply.decision.replayed); /* it had indeed been applied */
    }
    /* What was sent once, or changes nothing, keeps its definite error. */
    atomic_store(&world.grantor.refuse_with, ASTER_ERR_TIMEOUT);
    operation.request_id[0] = 100;
    assert_int_equal(remote_world_call(&world, &operation, 10000), ASTER_ERR_TIMEOUT);
    operation = remote_world_operation(&world, ASTER_OP_INSPECT, 0);
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
    aster_serializer_submit(world.client.serializer, &sent->request);
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
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    send_operation(&waiting, &operation, 60000);
    await(&world.grantor.requests, 2);
    atomic_store(&world.grantor.silent, true); /* the cancel is not answered before the connection is lost */
    aster_serializer_cancel(world.client.serializer, &waiting.request);
    await(&world.grantor.cancels, 1);
    uint16_t port = aster_address_port(&world.grantor.bound);
    remote_grantor_stop(&world.grantor);
    atomic_store(&world.grantor.silent, false);
    remote_grantor_start(&world.grantor, REMOTE_QUIC, port);
    while (atomic_load(&waiting.answers) == 0) {
        usleep(1000);
    }
    assert_int_equal(atomic_load(&waiting.status), ASTER_ERR_INDETERMINATE);
    operation = remote_world_operation(&world, ASTER_OP_RELEASE, 1);
    remote_world_expect(&world, &operation, 2); /* what is sent again goes first */
    assert_int_equal(atomic_load(&world.grantor.requests), 3);
    assert_int_equal(aster_inspect(world.grantor.serializer, aster_text("catalog"), &world.reply, &world.error),
                     ASTER_OK);
    assert_false(world.reply.decision.snapshot.held);
    assert_int_equal(atomic_load(&waiting.answers), 1);
}

#define PUTS 24

static void what_is_sent_again_keeps_its_order(void **state)
{
    (void)state;
    static struct sent puts[PUTS];
    quic_relay_start(&world.relay, &world.grantor.bound);
    remote_world_open_through_relay(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    atomic_store(&world.relay.dark, ASTER_RELAY_BOTH_WAYS);
    for (size_t i = 0; i < PUTS; i++) {
        operation = remote_world_operation(&world, ASTER_OP_PUT, 1);
        operation.holder = operation.caller;
        operation.value = aster_text("value");
        operation.value_revision = (int64_t)i; /* granted only after the one before it */
        send_operation(&puts[i], &operation, 0);
    }
    while (!remote_client_logged(&world.client, "connection lost")) {
        usleep(10000);
    }
    assert_int_equal(atomic_load(&world.grantor.requests), 1);
    atomic_store(&world.relay.dark, 0);
    for (size_t i = 0; i < PUTS; i++) {
        while (atomic_load(&puts[i].answers) == 0) {
            usleep(1000);
        }
        assert_int_equal(atomic_load(&puts[i].status), ASTER_OK);
        assert_int_equal(puts[i].reason, ASTER_REASON_NONE);
    }
    aster_relay_stop(&world.relay);
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
