/* What networks and servers do to leases of a grantor: restarts, silence, darkness, strangers. */
#include "support/unit.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/serializer.h"
#include "base/alloc.h"
#include "support/quic_relay.h"
#include "support/quic_side.h"
#include "support/remote_grantor.h"
#include "support/requests.h"

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

static void open_client(void)
{
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.idle_timeout_ms = 600;
    remote_client_open(&client, &options);
}

/* The way leads through a relay that can go dark. */
static void open_client_through_relay(void)
{
    static char address[ASTER_ADDRESS_TEXT_MAX];
    quic_relay_start(&relay, &grantor.bound);
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.addresses = aster_address_text(&relay.address, address);
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

static int64_t now_ms(void)
{
    return aster_clock_now_ns(aster_clock_system()) / 1000000;
}

static void leases_survive_a_restart_of_the_server(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *lease = NULL;
    open_client();
    options.ttl_ms = 3000;
    options.renew_interval_ms = 100;
    assert_int_equal(aster_lease_acquire(client.serializer, aster_text("catalog"), aster_text(client.id), &options,
                                         &lease, NULL, &error),
                     ASTER_OK);
    uint16_t port = aster_address_port(&grantor.bound);
    remote_grantor_stop(&grantor);
    assert_int_equal(aster_memory_restart(grantor.serializer, &error), ASTER_OK);
    remote_grantor_start(&grantor, REMOTE_QUIC, port);
    unsigned before = atomic_load(&grantor.renewals);
    while (atomic_load(&grantor.renewals) < before + 3) {
        usleep(10000);
        assert_non_null(aster_lease_fence(lease));
    }
    assert_int_equal(aster_lease_fence(lease)->epoch, 1);
    assert_int_equal(aster_lease_release(lease, 5000, NULL, &error), ASTER_OK);
    aster_lease_destroy(lease);
}

static void a_wait_goes_on_after_a_restart(void **state)
{
    (void)state;
    struct remote_client other;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    open_client();
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    remote_client_init(&other);
    struct aster_grantor_options others = remote_client_options(&other, &grantor);
    others.idle_timeout_ms = 600;
    remote_client_open(&other, &others);
    options.wait_ms = 20000;
    assert_int_equal(
        aster_lease_start(other.serializer, aster_text("catalog"), aster_text(other.id), &options, &waiting, &error),
        ASTER_OK);
    unsigned before = atomic_load(&grantor.requests);
    while (atomic_load(&grantor.requests) < 2) {
        usleep(1000);
    }
    before = atomic_load(&grantor.requests);
    uint16_t port = aster_address_port(&grantor.bound);
    remote_grantor_stop(&grantor);
    remote_grantor_start(&grantor, REMOTE_QUIC, port);
    while (atomic_load(&grantor.requests) == before) { /* it has queued again */
        usleep(1000);
    }
    operation = op(ASTER_OP_RELEASE, 1);
    expect_granted(&operation, 2);
    assert_int_equal(aster_lease_wait_acquired(waiting, 10000, NULL, &error), ASTER_OK);
    assert_non_null(aster_lease_fence(waiting));
    aster_lease_destroy(waiting);
    remote_client_fini(&other);
}

static void in_the_dark_what_was_sent_is_unknown_and_what_was_not_is_not_applied(void **state)
{
    (void)state;
    open_client_through_relay();
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    operation = op(ASTER_OP_RELEASE, 1);
    assert_int_equal(call(&operation, 300), ASTER_ERR_INDETERMINATE);
    while (!remote_client_logged(&client, "connection lost")) {
        usleep(10000);
    }
    operation = op(ASTER_OP_ACQUIRE, 0);
    assert_int_equal(call(&operation, 300), ASTER_ERR_UNREACHABLE);
    assert_non_null(strstr(error.message, "nothing was applied"));
    /* Nothing is lost for ever: with light again the next request goes through. */
    atomic_store(&relay.dark, 0);
    operation = op(ASTER_OP_INSPECT, 0);
    assert_int_equal(call(&operation, 10000), ASTER_OK);
    int64_t before = now_ms();
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    aster_serializer_destroy(client.serializer);
    client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_relay_stop(&relay);
}

static void in_the_dark_a_lease_is_lost_at_its_limit_and_everything_closes_soon(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *lease = NULL;
    struct aster_lease_report report;
    open_client_through_relay();
    options.ttl_ms = 1000;
    assert_int_equal(aster_lease_acquire(client.serializer, aster_text("catalog"), aster_text(client.id), &options,
                                         &lease, NULL, &error),
                     ASTER_OK);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    while (aster_lease_fence(lease) != NULL) {
        usleep(1000);
    }
    assert_int_equal(aster_inspect(grantor.serializer, aster_text("catalog"), &reply, &error), ASTER_OK);
    assert_true(reply.decision.snapshot.held); /* nobody could be granted before the holder stopped */
    assert_true(aster_bytes_equal(reply.decision.snapshot.holder, aster_text(client.id)));
    do {
        usleep(1000);
        aster_lease_report_get(lease, &report);
    } while (report.status == ASTER_LEASE_HELD);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_int_equal(report.reason, ASTER_LEASE_REASON_UNREACHABLE);
    struct aster_operation operation = op(ASTER_OP_INSPECT, 0);
    int64_t before = now_ms();
    call(&operation, 50);
    aster_lease_destroy(lease);
    aster_serializer_destroy(client.serializer);
    client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_relay_stop(&relay);
}

static void a_server_that_never_answers_bounds_cancel_and_close(void **state)
{
    (void)state;
    open_client();
    struct aster_operation operation = op(ASTER_OP_INSPECT, 0);
    assert_int_equal(call(&operation, 5000), ASTER_OK);
    atomic_store(&grantor.silent, true); /* it still says that it is alive, so the connection stays */
    assert_int_equal(call(&operation, 200), ASTER_ERR_TIMEOUT);
    operation = op(ASTER_OP_ACQUIRE, 0);
    assert_int_equal(call(&operation, 200), ASTER_ERR_INDETERMINATE);
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    options.wait_ms = 60000;
    assert_int_equal(
        aster_lease_start(client.serializer, aster_text("other"), aster_text(client.id), &options, &waiting, &error),
        ASTER_OK);
    int64_t before = now_ms();
    aster_serializer_destroy(client.serializer);
    client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_lease_destroy(waiting);
}

static void another_server_at_the_address_is_not_believed(void **state)
{
    (void)state;
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.server = client.id; /* whoever it is, not the one who listens there */
    remote_client_open(&client, &options);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    int64_t before = now_ms();
    assert_int_equal(call(&operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_true(now_ms() - before < 10000); /* waiting would change nothing */
    assert_int_equal(atomic_load(&grantor.requests), 0);
}

static void a_node_that_is_not_admitted_learns_it_at_once(void **state)
{
    (void)state;
    atomic_store(&grantor.admit_nobody, true);
    open_client();
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    int64_t before = now_ms();
    assert_int_equal(call(&operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_true(now_ms() - before < 10000);
    if (strstr(error.message, "admit") == NULL) {
        fail_msg("%s", error.message);
    }
    atomic_store(&grantor.admit_nobody, false);
    expect_granted(&operation, 1); /* and once it is admitted, the same serializer works */
}

static aster_status count_refused(void *argument)
{
    uint64_t *refused = argument;
    refused[0] = aster_transport_counts(grantor.quic).refused;
    refused[1] = aster_transport_counts(grantor.tcp).refused;
    return ASTER_OK;
}

/* TCP is for networks that drop UDP, not for servers that have said no. */
static void a_refusal_over_quic_is_not_asked_for_again_over_tcp(void **state)
{
    (void)state;
    uint64_t refused[2] = {0, 0};
    remote_grantor_stop(&grantor);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    atomic_store(&grantor.admit_nobody, true);
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.fallback_delay_ms = 5000; /* however slow the machine is, QUIC is answered before */
    remote_client_open(&client, &options);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    assert_int_equal(call(&operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_non_null(strstr(error.message, "admit"));
    aster_loop_call(grantor.loop, count_refused, refused);
    assert_true(refused[0] >= 1);
    assert_int_equal(refused[1], 0);
}

static void requests_go_out_once_there_is_memory_again(void **state)
{
    (void)state;
    open_client();
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    static const char value[5000]; /* more than the room that is left in the buffer */
    struct asked put;
    operation = op(ASTER_OP_PUT, 1);
    operation.holder = operation.caller;
    operation.value = (struct aster_bytes){value, sizeof value};
    unsigned before = atomic_load(&grantor.requests);
    aster_alloc_fail_after(0);
    ask(client.serializer, &put, operation, 0);
    usleep(50000); /* enough to be tried and refused */
    unsigned sent = atomic_load(&grantor.requests) - before;
    aster_alloc_fail_after(-1);
    assert_int_equal(sent, 0);
    operation = op(ASTER_OP_INSPECT, 0);
    expect_granted(&operation, 1); /* it was asked after the other and is answered after it */
    assert_true(asked_granted(&put));
    asked_fini(&put);
}

static void in_key_mode_the_server_must_be_named(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.server = NULL;
    assert_int_equal(aster_grantor_open(&options, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "IDENTITY@"));
    options.addresses = "nonsense";
    options.server = grantor.id;
    assert_int_equal(aster_grantor_open(&options, &serializer, &error), ASTER_ERR_INVALID);
    options = remote_client_options(&client, &grantor);
    options.node = "/nonexistent";
    assert_int_equal(aster_grantor_open(&options, &serializer, &error), ASTER_ERR_IO);
    assert_null(serializer);
}

static void a_dead_address_gives_way_to_the_next(void **state)
{
    (void)state;
    char addresses[3 * ASTER_ADDRESS_TEXT_MAX + ASTER_NODE_ID_SIZE];
    char bound[ASTER_ADDRESS_TEXT_MAX];
    char dark[ASTER_ADDRESS_TEXT_MAX];
    quic_relay_start(&relay, &grantor.bound);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    snprintf(addresses, sizeof addresses, "%s,%s@%s", aster_address_text(&relay.address, dark), grantor.id,
             aster_address_text(&grantor.bound, bound));
    struct aster_grantor_options options = remote_client_options(&client, &grantor);
    options.addresses = addresses;
    remote_client_open(&client, &options);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    aster_relay_stop(&relay);
}

static void where_udp_is_dropped_tcp_is_used_and_said(void **state)
{
    (void)state;
    remote_grantor_stop(&grantor);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    aster_transport_destroy(grantor.quic);
    grantor.quic = NULL;
    int mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* takes datagrams and answers none, as a firewall does */
    assert_int_equal(bind(mute, &grantor.bound.any, grantor.bound.size), 0);
    open_client();
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, 0);
    expect_granted(&operation, 1);
    assert_true(remote_client_logged(&client, "over tcp"));
    assert_true(remote_client_logged(&client, "UDP"));
    operation = op(ASTER_OP_RELEASE, 1);
    atomic_store(&grantor.lose_reply_to, ASTER_OP_RELEASE);
    expect_granted(&operation, 2);
    assert_true(reply.decision.replayed);
    close(mute);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(leases_survive_a_restart_of_the_server),
        TEST(a_wait_goes_on_after_a_restart),
        TEST(in_the_dark_what_was_sent_is_unknown_and_what_was_not_is_not_applied),
        TEST(in_the_dark_a_lease_is_lost_at_its_limit_and_everything_closes_soon),
        TEST(a_server_that_never_answers_bounds_cancel_and_close),
        TEST(another_server_at_the_address_is_not_believed),
        TEST(a_node_that_is_not_admitted_learns_it_at_once),
        TEST(a_refusal_over_quic_is_not_asked_for_again_over_tcp),
        TEST(requests_go_out_once_there_is_memory_again),
        TEST(in_key_mode_the_server_must_be_named),
        TEST(a_dead_address_gives_way_to_the_next),
        TEST(where_udp_is_dropped_tcp_is_used_and_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
