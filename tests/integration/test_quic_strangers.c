/* Strangers at the TCP listener: what is unfinished and what is ended are both bounded, and who is known gets in. */
#include "support/unit.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/quic_side.h"

#define STRANGERS 200
#define HANDSHAKES 16

static struct quic_side server;
static struct quic_side client;
static int strangers[STRANGERS];

static int open_pair(void **state)
{
    (void)state;
    quic_side_init(&server, "server");
    quic_side_init(&client, "client");
    server.echo = true;
    struct aster_transport_options options = quic_side_options(&server);
    options.handshakes_max = HANDSHAKES;
    quic_side_open(&server, aster_tcp_transport_create, &options);
    quic_side_listen(&server, 0);
    quic_side_open(&client, aster_tcp_transport_create, NULL);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(strangers[i] >= 0);
    }
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    quic_side_fini(&client);
    quic_side_fini(&server);
    return 0;
}

static void connect_stranger(int fd)
{
    assert_int_equal(connect(fd, &server.bound.any, server.bound.size), 0);
}

static void expect_bounded(void)
{
    struct aster_transport_counts counts = quic_side_counts(&server);
    assert_in_range(counts.handshakes, 0, HANDSHAKES);
    assert_in_range(counts.lingering, 0, HANDSHAKES);
    assert_int_equal(counts.connections, 0);
}

static void expect_that_the_client_gets_in(void)
{
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 1);
    assert_int_equal(quic_side_send(&client, "ping", 4), ASTER_OK);
    quic_side_wait(&client, &client.frames, 1);
    assert_string_equal(server.identity, client.id);
}

/* They say nothing and wait for the handshake's timeout. */
static void half_open_connections_make_way_for_younger_ones(void **state)
{
    (void)state;
    for (int i = 0; i < STRANGERS; i++) {
        connect_stranger(strangers[i]);
        if (i % HANDSHAKES == 0) {
            expect_bounded();
        }
    }
    quic_side_wait(&server, &server.refused, STRANGERS - HANDSHAKES);
    expect_bounded();
    expect_that_the_client_gets_in();
}

/* Each is refused at once; that it then stays for a moment, to hear why, is bounded too. */
static void connections_that_send_garbage_are_held_only_in_bounded_number(void **state)
{
    (void)state;
    unsigned char garbage[4096];
    memset(garbage, 0x5a, sizeof garbage);
    for (int i = 0; i < STRANGERS; i++) {
        connect_stranger(strangers[i]);
        (void)send(strangers[i], garbage, sizeof garbage, MSG_NOSIGNAL); /* may be refused already */
        if (i % HANDSHAKES == 0) {
            expect_bounded();
        }
    }
    quic_side_wait(&server, &server.refused, STRANGERS);
    expect_bounded();
    expect_that_the_client_gets_in();
}

/* Reading what a stranger sends after it was refused must not keep the thread from everybody else. */
static void a_stranger_that_goes_on_sending_delays_nobody(void **state)
{
    (void)state;
    unsigned char garbage[65536];
    memset(garbage, 0x5a, sizeof garbage);
    connect_stranger(strangers[0]);
    const struct timeval patience = {.tv_usec = 100000};
    assert_int_equal(setsockopt(strangers[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), 0);
    for (int i = 0; i < 100 && send(strangers[0], garbage, sizeof garbage, MSG_NOSIGNAL) > 0; i++) {
    }
    quic_side_wait(&server, &server.refused, 1);
    expect_that_the_client_gets_in();
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(half_open_connections_make_way_for_younger_ones),
        PAIR(connections_that_send_garbage_are_held_only_in_bounded_number),
        PAIR(a_stranger_that_goes_on_sending_delays_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
