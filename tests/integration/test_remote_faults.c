/* What networks and servers do to leases of a grantor: restarts, silence, darkness, strangers. */
#include "support/unit.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/serializer.h"
#include "base/alloc.h"
#include "support/quic_side.h"
#include "support/remote_world.h"
#include "support/requests.h"

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

static int64_t now_ms(void)
{
    return aster_clock_now_ns(aster_clock_system()) / 1000000;
}

static void leases_survive_a_restart_of_the_server(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *lease = NULL;
    remote_world_open(&world);
    options.ttl_ms = 3000;
    options.renew_interval_ms = 100;
    assert_int_equal(aster_lease_acquire(world.client.serializer, aster_text("catalog"), aster_text(world.client.id),
                                         &options, &lease, NULL, &world.error),
                     ASTER_OK);
    uint16_t port = aster_address_port(&world.grantor.bound);
    remote_grantor_stop(&world.grantor);
    assert_int_equal(aster_memory_restart(world.grantor.serializer, &world.error), ASTER_OK);
    remote_grantor_start(&world.grantor, REMOTE_QUIC, port);
    unsigned before = atomic_load(&world.grantor.renewals);
    while (atomic_load(&world.grantor.renewals) < before + 3) {
        usleep(10000);
        assert_non_null(aster_lease_fence(lease));
    }
    assert_int_equal(aster_lease_fence(lease)->epoch, 1);
    assert_int_equal(aster_lease_release(lease, 5000, NULL, &world.error), ASTER_OK);
    aster_lease_destroy(lease);
}

static void a_wait_goes_on_after_a_restart(void **state)
{
    (void)state;
    struct remote_client other;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    remote_client_init(&other);
    struct aster_grantor_options others = remote_client_options(&other, &world.grantor);
    others.idle_timeout_ms = 600;
    remote_client_open(&other, &others);
    options.wait_ms = 20000;
    assert_int_equal(aster_lease_start(other.serializer, aster_text("catalog"), aster_text(other.id), &options,
                                       &waiting, &world.error),
                     ASTER_OK);
    unsigned before = atomic_load(&world.grantor.requests);
    while (atomic_load(&world.grantor.requests) < 2) {
        usleep(1000);
    }
    before = atomic_load(&world.grantor.requests);
    uint16_t port = aster_address_port(&world.grantor.bound);
    remote_grantor_stop(&world.grantor);
    remote_grantor_start(&world.grantor, REMOTE_QUIC, port);
    while (atomic_load(&world.grantor.requests) == before) { /* it has queued again */
        usleep(1000);
    }
    operation = remote_world_operation(&world, ASTER_OP_RELEASE, 1);
    remote_world_expect(&world, &operation, 2);
    assert_int_equal(aster_lease_wait_acquired(waiting, 10000, NULL, &world.error), ASTER_OK);
    assert_non_null(aster_lease_fence(waiting));
    aster_lease_destroy(waiting);
    remote_client_fini(&other);
}

static void in_the_dark_what_was_sent_is_unknown_and_what_was_not_is_not_applied(void **state)
{
    (void)state;
    remote_world_open_through_relay(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    atomic_store(&world.relay.dark, ASTER_RELAY_BOTH_WAYS);
    operation = remote_world_operation(&world, ASTER_OP_RELEASE, 1);
    assert_int_equal(remote_world_call(&world, &operation, 300), ASTER_ERR_INDETERMINATE);
    while (!remote_client_logged(&world.client, "connection lost")) {
        usleep(10000);
    }
    operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    assert_int_equal(remote_world_call(&world, &operation, 300), ASTER_ERR_UNREACHABLE);
    assert_non_null(strstr(world.error.message, "nothing was applied"));
    /* Nothing is lost for ever: with light again the next request goes through. */
    atomic_store(&world.relay.dark, 0);
    operation = remote_world_operation(&world, ASTER_OP_INSPECT, 0);
    assert_int_equal(remote_world_call(&world, &operation, 10000), ASTER_OK);
    int64_t before = now_ms();
    atomic_store(&world.relay.dark, ASTER_RELAY_BOTH_WAYS);
    aster_serializer_destroy(world.client.serializer);
    world.client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_relay_stop(&world.relay);
}

static void in_the_dark_a_lease_is_lost_at_its_limit_and_everything_closes_soon(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *lease = NULL;
    struct aster_lease_report report;
    remote_world_open_through_relay(&world);
    options.ttl_ms = 1000;
    assert_int_equal(aster_lease_acquire(world.client.serializer, aster_text("catalog"), aster_text(world.client.id),
                                         &options, &lease, NULL, &world.error),
                     ASTER_OK);
    atomic_store(&world.relay.dark, ASTER_RELAY_BOTH_WAYS);
    while (aster_lease_fence(lease) != NULL) {
        usleep(1000);
    }
    assert_int_equal(aster_inspect(world.grantor.serializer, aster_text("catalog"), &world.reply, &world.error),
                     ASTER_OK);
    assert_true(world.reply.decision.snapshot.held); /* nobody could be granted before the holder stopped */
    assert_true(aster_bytes_equal(world.reply.decision.snapshot.holder, aster_text(world.client.id)));
    do {
        usleep(1000);
        aster_lease_report_get(lease, &report);
    } while (report.status == ASTER_LEASE_HELD);
    assert_int_equal(report.status, ASTER_LEASE_LOST);
    assert_int_equal(report.reason, ASTER_LEASE_REASON_UNREACHABLE);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_INSPECT, 0);
    int64_t before = now_ms();
    remote_world_call(&world, &operation, 50);
    aster_lease_destroy(lease);
    aster_serializer_destroy(world.client.serializer);
    world.client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_relay_stop(&world.relay);
}

static void a_server_that_never_answers_bounds_cancel_and_close(void **state)
{
    (void)state;
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_INSPECT, 0);
    assert_int_equal(remote_world_call(&world, &operation, 5000), ASTER_OK);
    atomic_store(&world.grantor.silent, true); /* it still says that it is alive, so the connection stays */
    assert_int_equal(remote_world_call(&world, &operation, 200), ASTER_ERR_TIMEOUT);
    operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    assert_int_equal(remote_world_call(&world, &operation, 200), ASTER_ERR_INDETERMINATE);
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    options.wait_ms = 60000;
    assert_int_equal(aster_lease_start(world.client.serializer, aster_text("other"), aster_text(world.client.id),
                                       &options, &waiting, &world.error),
                     ASTER_OK);
    int64_t before = now_ms();
    aster_serializer_destroy(world.client.serializer);
    world.client.serializer = NULL;
    assert_true(now_ms() - before < 3000);
    aster_lease_destroy(waiting);
}

static void another_server_at_the_address_is_not_believed(void **state)
{
    (void)state;
    struct aster_grantor_options options = remote_client_options(&world.client, &world.grantor);
    options.server = world.client.id; /* whoever it is, not the one who listens there */
    remote_client_open(&world.client, &options);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    int64_t before = now_ms();
    assert_int_equal(remote_world_call(&world, &operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_true(now_ms() - before < 10000); /* waiting would change nothing */
    assert_int_equal(atomic_load(&world.grantor.requests), 0);
}

static void a_node_that_is_not_admitted_learns_it_at_once(void **state)
{
    (void)state;
    atomic_store(&world.grantor.admit_nobody, true);
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    int64_t before = now_ms();
    assert_int_equal(remote_world_call(&world, &operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_true(now_ms() - before < 10000);
    if (strstr(world.error.message, "admit") == NULL) {
        fail_msg("%s", world.error.message);
    }
    atomic_store(&world.grantor.admit_nobody, false);
    remote_world_expect(&world, &operation, 1); /* and once it is admitted, the same serializer works */
}

static aster_status count_refused(void *argument)
{
    uint64_t *refused = argument;
    refused[0] = aster_transport_counts(world.grantor.quic).refused;
    refused[1] = aster_transport_counts(world.grantor.tcp).refused;
    return ASTER_OK;
}

/* TCP is for networks that drop UDP, not for servers that have said no. */
static void a_refusal_over_quic_is_not_asked_for_again_over_tcp(void **state)
{
    (void)state;
    uint64_t refused[2] = {0, 0};
    remote_grantor_stop(&world.grantor);
    remote_grantor_start(&world.grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    atomic_store(&world.grantor.admit_nobody, true);
    struct aster_grantor_options options = remote_client_options(&world.client, &world.grantor);
    options.fallback_delay_ms = 5000; /* however slow the machine is, QUIC is answered before */
    remote_client_open(&world.client, &options);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    assert_int_equal(remote_world_call(&world, &operation, 20000), ASTER_ERR_UNREACHABLE);
    assert_non_null(strstr(world.error.message, "admit"));
    aster_loop_call(world.grantor.loop, count_refused, refused);
    assert_true(refused[0] >= 1);
    assert_int_equal(refused[1], 0);
}

static void requests_go_out_once_there_is_memory_again(void **state)
{
    (void)state;
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    static const char value[5000]; /* more than the room that is left in the buffer */
    struct asked put;
    operation = remote_world_operation(&world, ASTER_OP_PUT, 1);
    operation.holder = operation.caller;
    operation.value = (struct aster_bytes){value, sizeof value};
    unsigned before = atomic_load(&world.grantor.requests);
    aster_alloc_fail_after(0);
    ask(world.client.serializer, &put, operation, 0);
    usleep(50000); /* enough to be tried and refused */
    unsigned sent = atomic_load(&world.grantor.requests) - before;
    aster_alloc_fail_after(-1);
    assert_int_equal(sent, 0);
    operation = remote_world_operation(&world, ASTER_OP_INSPECT, 0);
    remote_world_expect(&world, &operation, 1); /* it was asked after the other and is answered after it */
    assert_true(asked_granted(&put));
    asked_fini(&put);
}

static void in_key_mode_the_server_must_be_named(void **state)
{
    (void)state;
    struct aster_serializer *serializer = NULL;
    struct aster_grantor_options options = remote_client_options(&world.client, &world.grantor);
    options.server = NULL;
    assert_int_equal(aster_grantor_open(&options, &serializer, &world.error), ASTER_ERR_INVALID);
    assert_non_null(strstr(world.error.message, "IDENTITY@"));
    options.addresses = "nonsense";
    options.server = world.grantor.id;
    assert_int_equal(aster_grantor_open(&options, &serializer, &world.error), ASTER_ERR_INVALID);
    options = remote_client_options(&world.client, &world.grantor);
    options.node = "/nonexistent";
    assert_int_equal(aster_grantor_open(&options, &serializer, &world.error), ASTER_ERR_IO);
    assert_null(serializer);
}

static void a_dead_address_gives_way_to_the_next(void **state)
{
    (void)state;
    char addresses[3 * ASTER_ADDRESS_TEXT_MAX + ASTER_NODE_ID_SIZE];
    char bound[ASTER_ADDRESS_TEXT_MAX];
    char dark[ASTER_ADDRESS_TEXT_MAX];
    quic_relay_start(&world.relay, &world.grantor.bound);
    atomic_store(&world.relay.dark, ASTER_RELAY_BOTH_WAYS);
    snprintf(addresses, sizeof addresses, "%s,%s@%s", aster_address_text(&world.relay.address, dark), world.grantor.id,
             aster_address_text(&world.grantor.bound, bound));
    struct aster_grantor_options options = remote_client_options(&world.client, &world.grantor);
    options.addresses = addresses;
    remote_client_open(&world.client, &options);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    aster_relay_stop(&world.relay);
}

static void where_udp_is_dropped_tcp_is_used_and_said(void **state)
{
    (void)state;
    remote_grantor_stop(&world.grantor);
    remote_grantor_start(&world.grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    aster_transport_destroy(world.grantor.quic);
    world.grantor.quic = NULL;
    int mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* takes datagrams and answers none, as a firewall does */
    assert_int_equal(bind(mute, &world.grantor.bound.any, world.grantor.bound.size), 0);
    remote_world_open(&world);
    struct aster_operation operation = remote_world_operation(&world, ASTER_OP_ACQUIRE, 0);
    remote_world_expect(&world, &operation, 1);
    assert_true(remote_client_logged(&world.client, "over tcp"));
    assert_true(remote_client_logged(&world.client, "UDP"));
    operation = remote_world_operation(&world, ASTER_OP_RELEASE, 1);
    atomic_store(&world.grantor.lose_reply_to, ASTER_OP_RELEASE);
    remote_world_expect(&world, &operation, 2);
    assert_true(world.reply.decision.replayed);
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
