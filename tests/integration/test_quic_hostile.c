/* What strangers, floods, restarts and the network do to an endpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/entropy.h"
#include "support/quic_relay.h"
#include "support/quic_side.h"

static struct quic_side server;
static struct quic_side client;
static struct aster_relay relay; /* of the tests that start it */

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
    aster_relay_stop(&relay);
    quic_side_fini(&client);
    quic_side_fini(&server);
    return 0;
}

static void start(const struct aster_transport_options *options)
{
    quic_side_open(&server, aster_quic_transport_create, options);
    quic_side_listen(&server, 0);
    quic_side_open(&client, aster_quic_transport_create, NULL);
}

static void connect_once_more(void)
{
    unsigned before = client.opened;
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, before + 1);
}

static void exchange(void)
{
    unsigned before = client.frames;
    assert_int_equal(quic_side_send(&client, "ping", 4), ASTER_OK);
    quic_side_wait(&client, &client.frames, before + 1);
}

/* A socket of a stranger, connected to the server. */
static int stranger(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &server.bound.any, server.bound.size), 0);
    return fd;
}

static void garbage_datagrams_are_ignored_and_never_answered_with_more(void **state)
{
    (void)state;
    start(NULL);
    connect_once_more();
    int fd = stranger();
    unsigned char junk[1400];
    for (unsigned i = 0; i < 3000; i++) {
        assert_int_equal(aster_entropy_fill(junk, sizeof junk, NULL), ASTER_OK);
        size_t size = 1 + i % sizeof junk;
        if (send(fd, junk, size, 0) < 0) {
            continue;
        }
        struct pollfd ready = {fd, POLLIN, 0};
        unsigned char answer[2000];
        while (poll(&ready, 1, 0) == 1) {
            ssize_t got = recv(fd, answer, sizeof answer, 0);
            assert_true(got < (ssize_t)sizeof junk);
        }
        if (i % 500 == 0) {
            exchange();
        }
    }
    close(fd);
    exchange();
    assert_int_equal(client.closed, 0);
    assert_int_equal(server.closed, 0);
    assert_true(quic_side_counts(&server).ignored > 0);
    assert_int_equal(quic_side_counts(&server).connections, 1);
}

static void a_stateless_reset_is_always_shorter_than_what_caused_it(void **state)
{
    (void)state;
    start(NULL);
    int fd = stranger();
    unsigned char packet[1200];
    assert_int_equal(aster_entropy_fill(packet, sizeof packet, NULL), ASTER_OK);
    packet[0] = 0x40; /* a short header */
    static const size_t sizes[] = {1, 17, 21, 22, 30, 43, 100, 1200};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(send(fd, packet, sizes[i], 0), sizes[i]);
        struct pollfd ready = {fd, POLLIN, 0};
        unsigned char answer[2000];
        bool expected = sizes[i] >= 22;
        int answered = poll(&ready, 1, expected ? 5000 : 50);
        assert_int_equal(answered, expected);
        if (answered) {
            ssize_t size = recv(fd, answer, sizeof answer, 0);
            assert_true(size >= 21);
            assert_true((size_t)size < sizes[i]);
        }
    }
    close(fd);
}

static void under_load_addresses_must_be_proved_first(void **state)
{
    (void)state;
    struct aster_transport_options options = quic_side_options(&server);
    options.retry_above = 0;
    start(&options);
    connect_once_more();
    exchange();
    assert_string_equal(client.identity, server.id);
    assert_true(quic_side_counts(&server).retries >= 1);
}

static void an_unknown_version_is_offered_the_known_one(void **state)
{
    (void)state;
    start(NULL);
    int fd = stranger();
    unsigned char packet[1200] = {0xc0, 0xba, 0xba, 0xba, 0xba, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9};
    assert_int_equal(send(fd, packet, sizeof packet, 0), sizeof packet);
    struct pollfd ready = {fd, POLLIN, 0};
    unsigned char answer[2000];
    assert_int_equal(poll(&ready, 1, 5000), 1);
    ssize_t size = recv(fd, answer, sizeof answer, 0);
    assert_true(size > 11 && size < 100);
    assert_memory_equal(answer + 1, "\0\0\0\0", 4);
    assert_memory_equal(answer + size - 4, "\0\0\0\1", 4);
    close(fd);
}

static void half_open_handshakes_end_with_their_timeout(void **state)
{
    (void)state;
    struct aster_transport_options options = quic_side_options(&server);
    options.handshake_timeout_ms = 300;
    start(&options);
    /* A client whose answers never arrive: one packet of a real one, sent from a stranger's socket. */
    int hole = socket(AF_INET, SOCK_DGRAM, 0);
    struct aster_address address = loopback_address(0);
    assert_int_equal(bind(hole, &address.any, address.size), 0);
    assert_int_equal(getsockname(hole, &address.any, &address.size), 0);
    quic_side_connect(&client, &address, server.id);
    unsigned char packet[2000];
    ssize_t size = recv(hole, packet, sizeof packet, 0);
    assert_true(size >= 1200);
    int fd = stranger();
    assert_int_equal(send(fd, packet, (size_t)size, 0), size);
    quic_side_wait(&server, &server.refused, 1);
    assert_int_equal(quic_side_counts(&server).handshakes, 0);
    assert_int_equal(server.opened, 0);
    close(fd);
    close(hole);
}

/* First packets of real clients, sent from strangers' sockets that never answer. */
static void a_flood_of_half_open_handshakes_is_bounded_and_leaves_others_in_peace(void **state)
{
    (void)state;
    enum { FLOOD = 100, ABOVE = 16 };
    struct aster_transport_options options = quic_side_options(&server);
    options.retry_above = ABOVE;
    start(&options);
    connect_once_more();
    int hole = socket(AF_INET, SOCK_DGRAM, 0);
    int strangers[FLOOD];
    struct aster_address address = loopback_address(0);
    assert_int_equal(bind(hole, &address.any, address.size), 0);
    assert_int_equal(getsockname(hole, &address.any, &address.size), 0);
    for (unsigned i = 0; i < FLOOD; i++) {
        unsigned char packet[2000];
        quic_side_connect(&client, &address, server.id);
        ssize_t size = recv(hole, packet, sizeof packet, 0);
        assert_true(size >= 1200);
        strangers[i] = stranger();
        assert_int_equal(send(strangers[i], packet, (size_t)size, 0), size);
    }
    unsigned opened = client.opened;
    quic_side_connect(&client, &server.bound, server.id);
    quic_side_wait(&client, &client.opened, opened + 1);
    exchange();
    struct aster_transport_counts counts = quic_side_counts(&server);
    assert_true(counts.handshakes <= ABOVE);
    assert_true(counts.retries >= FLOOD - ABOVE);
    assert_int_equal(server.closed, 0);
    for (unsigned i = 0; i < FLOOD; i++) {
        close(strangers[i]);
    }
    close(hole);
}

static void a_thousand_handshakes_leave_nothing_behind(void **state)
{
    (void)state;
    start(NULL);
    for (unsigned i = 0; i < 1000; i++) {
        connect_once_more();
        quic_side_shut(&client);
        quic_side_wait(&client, &client.closed, i + 1);
    }
    quic_side_wait(&server, &server.closed, 1000);
    assert_int_equal(quic_side_counts(&server).connections, 0);
    assert_int_equal(quic_side_counts(&server).handshakes, 0);
    assert_int_equal(quic_side_counts(&server).accepted, 1000);
}

/* ---- another process ---- */

struct child {
    pid_t pid;
    uint16_t port;
};

/* A server in another process, with the files of `server`; this program runs itself, see main(). */
static struct child spawn(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "server", server.directory, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    struct child child = {pid, 0};
    assert_int_equal(read(ends[0], &child.port, sizeof child.port), sizeof child.port);
    close(ends[0]);
    return child;
}

static void kill_child(const struct child *child)
{
    int status;
    assert_int_equal(kill(child->pid, SIGKILL), 0);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
}

static void a_killed_server_is_noticed_at_once_when_it_is_back_and_a_reconnect_works(void **state)
{
    (void)state;
    unsigned char secret[ASTER_ENDPOINT_SECRET_SIZE];
    assert_int_equal(aster_node_secret(server.directory, secret, NULL), ASTER_OK);
    struct child child = spawn();
    struct aster_address remote = loopback_address(child.port);
    quic_relay_start(&relay, &remote); /* hides that a port is closed, and that the next one is another */
    quic_side_open(&client, aster_quic_transport_create, NULL);
    quic_side_connect(&client, &relay.address, server.id);
    quic_side_wait(&client, &client.opened, 1);
    exchange();
    kill_child(&child);
    child = spawn(); /* the same secret: it can say that it has forgotten */
    remote = loopback_address(child.port);
    aster_relay_move(&relay, &remote);
    assert_int_equal(quic_side_send(&client, "ping", 4), ASTER_OK);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_FORGOTTEN);
    quic_side_connect(&client, &relay.address, server.id);
    quic_side_wait(&client, &client.opened, 2);
    exchange();
    kill_child(&child);
}

static void a_killed_server_that_stays_away_is_noticed_by_its_closed_port(void **state)
{
    (void)state;
    struct child child = spawn();
    struct aster_address remote = loopback_address(child.port);
    quic_side_open(&client, aster_quic_transport_create, NULL);
    quic_side_connect(&client, &remote, server.id);
    quic_side_wait(&client, &client.opened, 1);
    kill_child(&child);
    quic_side_send(&client, "ping", 4); /* refused when a probe has found it out already */
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_UNREACHABLE);
}

static bool admit_all(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

static void ignore_opened(struct aster_link *link, void *user)
{
    (void)link;
    (void)user;
}

static void echo_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)user;
    aster_link_send(link, payload, NULL);
}

static void ignore_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)end;
    (void)error;
    (void)user;
}

static int serve(const char *directory)
{
    static const struct aster_link_handler handler = {ignore_opened, echo_frame, NULL, ignore_closed};
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    struct aster_transport *transport;
    struct aster_address bound;
    struct aster_address local = loopback_address(0);
    options.admit = admit_all;
    options.handler = &handler;
    if (aster_loop_create("server", &options.loop, NULL) != ASTER_OK ||
        aster_credentials_load_node(directory, &options.credentials, NULL) != ASTER_OK ||
        aster_node_secret(directory, options.secret, NULL) != ASTER_OK ||
        aster_quic_transport_create(&options, &transport, NULL) != ASTER_OK ||
        aster_transport_listen(transport, &local, &bound, NULL) != ASTER_OK) {
        return 1;
    }
    uint16_t number = aster_address_port(&bound);
    if (write(STDOUT_FILENO, &number, sizeof number) != sizeof number) {
        return 1;
    }
    alarm(60); /* whatever happens to the test */
    pause();
    return 0;
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(int count, char **arguments)
{
    if (count == 2) {
        return serve(arguments[1]);
    }
    const struct CMUnitTest tests[] = {
        PAIR(garbage_datagrams_are_ignored_and_never_answered_with_more),
        PAIR(a_stateless_reset_is_always_shorter_than_what_caused_it),
        PAIR(under_load_addresses_must_be_proved_first),
        PAIR(an_unknown_version_is_offered_the_known_one),
        PAIR(half_open_handshakes_end_with_their_timeout),
        PAIR(a_flood_of_half_open_handshakes_is_bounded_and_leaves_others_in_peace),
        PAIR(a_thousand_handshakes_leave_nothing_behind),
        PAIR(a_killed_server_is_noticed_at_once_when_it_is_back_and_a_reconnect_works),
        PAIR(a_killed_server_that_stays_away_is_noticed_by_its_closed_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
