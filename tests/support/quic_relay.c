#include "support/quic_relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <unistd.h>

#include "support/quic_side.h"

static int open_far(const struct aster_address *server)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &server->any, server->size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The same losses in every run. */
static bool lost(struct quic_relay *relay, uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return atomic_load(&relay->dark) || (int)(*state >> 16) % 100 < atomic_load(&relay->loss_percent);
}

static void forward(struct quic_relay *relay, bool to_server, struct aster_address *client, uint32_t *state)
{
    unsigned char data[2048];
    ssize_t size;
    if (to_server) {
        client->size = sizeof client->storage;
        size = recvfrom(relay->near_fd, data, sizeof data, MSG_DONTWAIT, &client->any, &client->size);
    } else {
        size = recv(relay->far_fd, data, sizeof data, MSG_DONTWAIT);
    }
    if (size <= 0 || lost(relay, state)) {
        return;
    }
    ssize_t sent = to_server ? send(relay->far_fd, data, (size_t)size, 0)
                             : sendto(relay->near_fd, data, (size_t)size, 0, &client->any, client->size);
    atomic_fetch_add(&relay->forwarded, sent > 0);
}

static void *run(void *argument)
{
    struct quic_relay *relay = argument;
    struct aster_address client;
    uint32_t state = 1;
    memset(&client, 0, sizeof client);
    while (!atomic_load(&relay->stop)) {
        if (atomic_load(&relay->rebind)) {
            close(relay->far_fd);
            relay->far_fd = open_far(&relay->server);
            atomic_store(&relay->rebind, false);
        }
        struct pollfd fds[2] = {{relay->near_fd, POLLIN, 0}, {relay->far_fd, POLLIN, 0}};
        if (poll(fds, 2, 20) <= 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            forward(relay, true, &client, &state);
        }
        if (fds[1].revents != 0) {
            forward(relay, false, &client, &state);
        }
    }
    return NULL;
}

void quic_relay_start(struct quic_relay *relay, const struct aster_address *server)
{
    memset(relay, 0, sizeof *relay);
    relay->server = *server;
    relay->address = loopback_address(0);
    relay->near_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    relay->far_fd = open_far(server);
    assert_true(relay->near_fd >= 0 && relay->far_fd >= 0);
    assert_int_equal(bind(relay->near_fd, &relay->address.any, relay->address.size), 0);
    assert_int_equal(getsockname(relay->near_fd, &relay->address.any, &relay->address.size), 0);
    assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
}

void quic_relay_move(struct quic_relay *relay, const struct aster_address *server)
{
    relay->server = *server; /* the thread looks at it only after it has seen `rebind` */
    atomic_store(&relay->rebind, true);
}

void quic_relay_stop(struct quic_relay *relay)
{
    if (relay->thread == 0) {
        return;
    }
    atomic_store(&relay->stop, true);
    pthread_join(relay->thread, NULL);
    relay->thread = 0;
    close(relay->near_fd);
    close(relay->far_fd);
}
