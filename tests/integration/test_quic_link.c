/* Two nodes over loopback, for each transport: identities, frames, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdio.h>

#include "platform/files.h"
#include "support/quic_side.h"
#include "wire/frame.h"

static quic_create create = aster_quic_transport_create;
static struct quic_side server;
static struct quic_side client;

static int open_pair(void **state)
{
    (void)state;
    quic_side_init(&server, "server");
    quic_side_init(&client, "client");
    server.echo = true;
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    quic_side_fini(&client);
    quic_side_fini(&server);
    return 0;
}

static void start(void)
{
    quic_side_open(&server, create, NULL);
    quic_side_listen(&server, 0);
    quic_side_open(&client, create, NULL);
}

static void connect_pair(void)
{
    start();
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 1);
    quic_side_wait(&server, &server.opened, 1);
}

static void each_side_knows_exactly_who_the_other_is(void **state)
{
    (void)state;
    connect_pair();
    assert_string_equal(client.identity, server.id);
    assert_string_equal(server.identity, client.id);
    assert_int_equal(strlen(server.identity), 64);
    assert_int_equal(quic_side_counts(&server).connections, 1);
    assert_int_equal(quic_side_counts(&server).handshakes, 0);
}

static void a_frame_comes_back_as_it_went(void **state)
{
    (void)state;
    connect_pair();
    assert_int_equal(quic_side_send(&client, "hello", 5), ASTER_OK);
    quic_side_wait(&client, &client.frames, 1);
    assert_int_equal(client.last_size, 5);
    assert_memory_equal(client.last_frame, "hello", 5);
}

static void pipelined_frames_of_all_sizes_come_back_in_order(void **state)
{
    (void)state;
    connect_pair();
    static unsigned char frame[ASTER_FRAME_PAYLOAD_MAX];
    const size_t sizes[] = {1, 100, 1100, 1452, 20000, ASTER_FRAME_PAYLOAD_MAX};
    unsigned sent = 0;
    size_t bytes = 0;
    for (unsigned round = 0; round < 200; round++) {
        size_t size = sizes[round % (round < 100 ? 4 : 6)];
        memset(frame, (int)round, size);
        aster_status status;
        while ((status = quic_side_send(&client, frame, size)) == ASTER_ERR_LIMIT) {
            quic_side_wait(&client, &client.frames, client.frames + 1);
        }
        assert_int_equal(status, ASTER_OK);
        sent++;
        bytes += size;
    }
    quic_side_wait(&client, &client.frames, sent);
    assert_int_equal(client.bytes, bytes);
    assert_int_equal((unsigned char)client.last_frame[0], 199);
    assert_int_equal(client.closed, 0);
}

/* An answer that takes a moment carries the acknowledgement with it: one datagram each way, not three in all. */
static void an_acknowledgement_travels_with_an_answer_that_comes_soon(void **state)
{
    (void)state;
    enum { EXCHANGES = 200 };
    server.echo = false;
    connect_pair();
    uint64_t before = quic_side_counts(&server).datagrams_sent;
    for (unsigned i = 1; i <= EXCHANGES; i++) {
        assert_int_equal(quic_side_send(&client, "request", 7), ASTER_OK);
        quic_side_wait(&server, &server.frames, i); /* this thread wakes in a later round of the server's loop */
        assert_int_equal(quic_side_send(&server, "answer", 6), ASTER_OK);
        quic_side_wait(&client, &client.frames, i);
    }
    uint64_t sent = quic_side_counts(&server).datagrams_sent - before;
    assert_in_range(sent, EXCHANGES / 2, EXCHANGES + EXCHANGES / 2); /* a busy machine may be late now and then */
}

static aster_status read_unacknowledged(void *argument)
{
    pthread_mutex_lock(&client.lock);
    *(size_t *)argument = client.link != NULL ? aster_link_unacknowledged(client.link) : 0;
    pthread_mutex_unlock(&client.lock);
    return ASTER_OK;
}

static void what_is_never_answered_is_acknowledged_all_the_same(void **state)
{
    (void)state;
    server.echo = false;
    connect_pair();
    size_t left = 1;
    assert_int_equal(quic_side_send(&client, "notice", 6), ASTER_OK);
    quic_side_wait(&server, &server.frames, 1);
    for (int i = 0; left > 0 && i < 2000; i++) {
        aster_pause_ns(10000000);
        aster_loop_call(client.loop, read_unacknowledged, &left);
    }
    assert_int_equal(left, 0);
    assert_int_equal(client.closed, 0);
}

static void a_peer_that_is_not_admitted_is_refused_in_the_handshake(void **state)
{
    (void)state;
    server.admit_nobody = true;
    start();
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.closed, 1);
    quic_side_wait(&server, &server.refused, 1);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    assert_int_equal(client.opened, 0);
    assert_int_equal(server.opened, 0);
    assert_string_equal(server.refused_identity, client.id);
    assert_non_null(strstr(server.error.message, "not admitted"));
    assert_non_null(strstr(client.error.message, "does not admit"));
    assert_int_equal(quic_side_counts(&server).handshakes, 0);
    assert_int_equal(quic_side_counts(&server).refused, 1);
}

static void a_client_does_not_talk_to_another_server_than_it_expects(void **state)
{
    (void)state;
    start();
    quic_side_connect(&client, &server.bound, client.id);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    assert_int_equal(client.opened, 0);
    assert_non_null(strstr(client.error.message, "expected was"));
}

static void a_connection_that_is_closed_in_good_order_ends_so_on_both_sides(void **state)
{
    (void)state;
    connect_pair();
    quic_side_shut(&client);
    quic_side_wait(&client, &client.closed, 1);
    quic_side_wait(&server, &server.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_LOCAL);
    assert_int_equal(server.end, ASTER_LINK_END_PEER);
}

static void a_server_that_shuts_down_tells_its_clients(void **state)
{
    (void)state;
    connect_pair();
    quic_side_close(&server);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_PEER);
    assert_int_equal(server.closed, 1);
    assert_int_equal(server.end, ASTER_LINK_END_LOCAL);
}

static void removing_a_node_closes_its_live_connections(void **state)
{
    (void)state;
    connect_pair();
    assert_int_equal(quic_side_expel(&server, server.id), 0);
    assert_int_equal(quic_side_expel(&server, client.id), 1);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
}

static void a_frame_that_is_too_large_closes_the_connection(void **state)
{
    (void)state;
    struct aster_transport_options options = quic_side_options(&server);
    options.frame_max = 1000;
    quic_side_open(&server, create, &options);
    quic_side_listen(&server, 0);
    quic_side_open(&client, create, NULL);
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 1);
    static unsigned char frame[1001];
    assert_int_equal(quic_side_send(&client, frame, sizeof frame), ASTER_OK);
    quic_side_wait(&server, &server.closed, 1);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(server.end, ASTER_LINK_END_PROTOCOL);
    assert_int_equal(client.end, ASTER_LINK_END_PROTOCOL);
    assert_int_equal(server.frames, 0);
    assert_non_null(strstr(server.error.message, "1001"));
}

static void a_send_buffer_is_bounded_when_the_peer_does_not_read(void **state)
{
    (void)state;
    server.echo = false;
    struct aster_transport_options options = quic_side_options(&client);
    options.send_buffer_max = 300000;
    quic_side_open(&server, create, NULL);
    quic_side_listen(&server, 0);
    quic_side_open(&client, create, &options);
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 1);
    quic_side_wait(&server, &server.opened, 1);
    quic_side_throttle(&server, true);
    static unsigned char frame[50000];
    unsigned sent = 0;
    aster_status status = ASTER_OK;
    while (sent < 4000 && (status = quic_side_send(&client, frame, sizeof frame)) == ASTER_OK) {
        sent++;
    }
    assert_int_equal(status, ASTER_ERR_LIMIT);
    quic_side_throttle(&server, false);
    quic_side_wait(&server, &server.frames, sent);
    assert_int_equal(server.bytes, (size_t)sent * sizeof frame);
}

static void after_a_renewal_of_the_certificate_the_identity_is_the_same(void **state)
{
    (void)state;
    connect_pair();
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_credentials *renewed;
    assert_int_equal(aster_node_renew(client.directory, "client", 30, &error), ASTER_OK);
    assert_int_equal(aster_credentials_load_node(client.directory, &renewed, &error), ASTER_OK);
    aster_transport_reload(client.transport, renewed);
    aster_credentials_unref(renewed);
    /* The old connection lives on, and a new one is the same node. */
    assert_int_equal(quic_side_send(&client, "a", 1), ASTER_OK);
    quic_side_wait(&client, &client.frames, 1);
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 2);
    quic_side_wait(&server, &server.opened, 2);
    assert_string_equal(server.identity, client.id);
}

/* A client's socket takes answers from the asked address only. */
static void asked_at(const char *listen_at, const char *ask_at)
{
    struct aster_address local;
    struct aster_address remote;
    struct aster_error error = ASTER_ERROR_INIT;
    size_t count;
    char text[ASTER_ADDRESS_TEXT_MAX];
    unsigned before = client.opened;
    assert_int_equal(aster_address_resolve(listen_at, true, &local, 1, &count, &error), ASTER_OK);
    if (aster_transport_listen(server.transport, &local, &server.bound, &error) != ASTER_OK) {
        print_message("skipping %s: %s\n", listen_at, error.message);
        return;
    }
    snprintf(text, sizeof text, "%s:%u", ask_at, aster_address_port(&server.bound));
    assert_int_equal(aster_address_resolve(text, true, &remote, 1, &count, &error), ASTER_OK);
    quic_side_connect(&client, &remote, server.id);
    quic_side_wait(&client, &client.opened, before + 1);
    assert_int_equal(quic_side_send(&client, "hello", 5), ASTER_OK);
    quic_side_wait(&client, &client.frames, before + 1);
}

static void a_listener_on_every_address_answers_from_the_one_that_was_asked(void **state)
{
    (void)state;
    start();
    asked_at("0.0.0.0:0", "127.0.0.2");
    asked_at("[::1]:0", "[::1]");
    asked_at("[::]:0", "[::1]");
    asked_at("[::]:0", "127.0.0.3");
    assert_int_equal(client.closed, 0);
}

static void nobody_listening_is_noticed(void **state)
{
    (void)state;
    start();
    struct aster_address remote = server.bound;
    quic_side_close(&server);
    quic_side_connect(&client, &remote, server.id);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_UNREACHABLE);
}

static void more_connections_than_allowed_are_told_so(void **state)
{
    (void)state;
    struct aster_transport_options options = quic_side_options(&server);
    options.connections_max = 1;
    quic_side_open(&server, create, &options);
    quic_side_listen(&server, 0);
    quic_side_open(&client, create, NULL);
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, 1);
    quic_side_wait(&server, &server.opened, 1);
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_OVERLOAD);
    assert_int_equal(quic_side_counts(&server).connections, 1);
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

static const struct CMUnitTest tests[] = {
    PAIR(each_side_knows_exactly_who_the_other_is),
    PAIR(a_frame_comes_back_as_it_went),
    PAIR(pipelined_frames_of_all_sizes_come_back_in_order),
    PAIR(what_is_never_answered_is_acknowledged_all_the_same),
    PAIR(a_peer_that_is_not_admitted_is_refused_in_the_handshake),
    PAIR(a_client_does_not_talk_to_another_server_than_it_expects),
    PAIR(a_connection_that_is_closed_in_good_order_ends_so_on_both_sides),
    PAIR(a_server_that_shuts_down_tells_its_clients),
    PAIR(removing_a_node_closes_its_live_connections),
    PAIR(a_frame_that_is_too_large_closes_the_connection),
    PAIR(a_send_buffer_is_bounded_when_the_peer_does_not_read),
    PAIR(after_a_renewal_of_the_certificate_the_identity_is_the_same),
    PAIR(a_listener_on_every_address_answers_from_the_one_that_was_asked),
    PAIR(nobody_listening_is_noticed),
    PAIR(more_connections_than_allowed_are_told_so),
};

static const struct CMUnitTest quic_tests[] = {PAIR(an_acknowledgement_travels_with_an_answer_that_comes_soon)};

int main(void)
{
    int failed = cmocka_run_group_tests_name("quic", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("datagrams", quic_tests, NULL, NULL);
    create = aster_tcp_transport_create;
    failed += cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
    return failed;
}
