/* What networks do: lose packets, go dark, change a client's address under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/quic_relay.h"
#include "support/quic_side.h"

static struct quic_side server;
static struct quic_side client;
static struct aster_relay relay;

static void open_with(int64_t handshake_timeout_ms, int64_t idle_timeout_ms)
{
    quic_side_init(&server, "server");
    quic_side_init(&client, "client");
    server.echo = true;
    struct aster_transport_options options = quic_side_options(&server);
    options.handshake_timeout_ms = handshake_timeout_ms;
    options.idle_timeout_ms = idle_timeout_ms;
    options.keep_alive_ms = 300;
    quic_side_open(&server, aster_quic_transport_create, &options);
    quic_side_listen(&server, 0);
    quic_relay_start(&relay, &server.bound);
    options = quic_side_options(&client);
    options.handshake_timeout_ms = handshake_timeout_ms;
    options.idle_timeout_ms = idle_timeout_ms;
    options.keep_alive_ms = 300;
    quic_side_open(&client, aster_quic_transport_create, &options);
}

static int open_all(void **state)
{
    (void)state;
    open_with(5000, 1000);
    return 0;
}

/* Timers back off: what is lost again and again takes long, and does not fail. */
static int open_patient(void **state)
{
    (void)state;
    open_with(60000, 60000);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    quic_side_close(&client);
    quic_side_close(&server);
    aster_relay_stop(&relay);
    quic_side_fini(&client);
    quic_side_fini(&server);
    return 0;
}

static void connect_through_relay(void)
{
    quic_side_connect(&client, &relay.address, server.id);
    quic_side_wait(&client, &client.opened, 1);
    quic_side_wait(&server, &server.opened, 1);
}

static void send_and_count(unsigned count, size_t size)
{
    static unsigned char frame[4000];
    unsigned target = client.frames + count;
    for (unsigned i = 0; i < count; i++) {
        while (quic_side_send(&client, frame, size) == ASTER_ERR_LIMIT) {
            quic_side_wait(&client, &client.frames, client.frames + 1);
        }
    }
    quic_side_wait(&client, &client.frames, target);
}

static void every_frame_arrives_once_although_packets_are_lost(void **state)
{
    (void)state;
    connect_through_relay();
    atomic_store(&relay.loss_percent, 10);
    send_and_count(200, 1500);
    assert_int_equal(client.frames, 200);
    assert_int_equal(server.frames, 200);
    assert_int_equal(client.bytes, 200 * 1500);
    assert_int_equal(client.closed, 0);
}

static void a_handshake_succeeds_although_packets_are_lost(void **state)
{
    (void)state;
    atomic_store(&relay.loss_percent, 20); /* either way */
    connect_through_relay();
    assert_string_equal(server.identity, client.id);
}

static void a_client_whose_address_changes_stays_the_same_client(void **state)
{
    (void)state;
    connect_through_relay();
    send_and_count(10, 100);
    for (unsigned i = 0; i < 3; i++) {
        atomic_store(&relay.rebind, true);
        send_and_count(50, 1000);
        assert_false(atomic_load(&relay.rebind));
    }
    assert_int_equal(client.closed, 0);
    assert_int_equal(server.closed, 0);
    assert_int_equal(server.opened, 1);
    assert_string_equal(server.identity, client.id);
}

static void keep_alive_holds_an_idle_connection(void **state)
{
    (void)state;
    connect_through_relay();
    unsigned before = atomic_load(&relay.forwarded);
    /* Three idle timeouts long nothing but keep-alives is sent; each is two datagrams, there and back. */
    while (atomic_load(&relay.forwarded) < before + 20) {
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        assert_int_equal(client.closed, 0);
    }
    send_and_count(1, 10);
    assert_int_equal(server.closed, 0);
}

static void both_sides_notice_a_network_that_went_dark(void **state)
{
    (void)state;
    connect_through_relay();
    send_and_count(1, 10);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    quic_side_wait(&client, &client.closed, 1);
    quic_side_wait(&server, &server.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_UNREACHABLE);
    assert_int_equal(server.end, ASTER_LINK_END_UNREACHABLE);
    assert_int_equal(quic_side_counts(&server).connections, 0);
}

static void a_server_in_the_dark_is_given_up_after_the_handshake_timeout(void **state)
{
    (void)state;
    quic_side_close(&client);
    struct aster_transport_options options = quic_side_options(&client);
    options.handshake_timeout_ms = 500;
    quic_side_open(&client, aster_quic_transport_create, &options);
    atomic_store(&relay.dark, ASTER_RELAY_BOTH_WAYS);
    quic_side_connect(&client, &relay.address, server.id);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_UNREACHABLE);
    assert_int_equal(client.opened, 0);
}

#define ALL(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(every_frame_arrives_once_although_packets_are_lost),
        cmocka_unit_test_setup_teardown(a_handshake_succeeds_although_packets_are_lost, open_patient, close_all),
        ALL(a_client_whose_address_changes_stays_the_same_client),
        ALL(keep_alive_holds_an_idle_connection),
        ALL(both_sides_notice_a_network_that_went_dark),
        ALL(a_server_in_the_dark_is_given_up_after_the_handshake_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
