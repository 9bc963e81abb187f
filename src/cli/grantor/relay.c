#include "cli/grantor/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/thread.h"

#define DATAGRAM_MAX 2048
#define LOOK_MS 20

static int open_far(const struct aster_address *server)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &server->any, server->size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int open_near(struct aster_address *address)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    memset(address, 0, sizeof *address);
    address->size = sizeof loopback;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&loopback, sizeof loopback) != 0 ||
                    getsockname(fd, &address->any, &address->size) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The same losses in every run. */
static bool lost(struct aster_relay *relay, enum aster_relay_way way, uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (atomic_load(&relay->dark) & (int)way) != 0 || (int)(*state >> 16) % 100 < atomic_load(&relay->loss_percent);
}

static void forward(struct aster_relay *relay, enum aster_relay_way way, struct aster_address *client, uint32_t *state)
{
    unsigned char data[DATAGRAM_MAX];
    ssize_t size;
    if (way == ASTER_RELAY_TO_SERVER) {
        client->size = sizeof client->storage;
        size = recvfrom(relay->near_fd, data, sizeof data, MSG_DONTWAIT, &client->any, &client->size);
    } else {
        size = recv(relay->far_fd, data, sizeof data, MSG_DONTWAIT);
    }
    if (size <= 0 || lost(relay, way, state)) {
        return;
    }
    ssize_t sent = way == ASTER_RELAY_TO_SERVER
                       ? send(relay->far_fd, data, (size_t)size, 0)
                       : sendto(relay->near_fd, data, (size_t)size, 0, &client->any, client->size);
    atomic_fetch_add(&relay->forwarded, sent > 0);
}

static void *run(void *argument)
{
    struct aster_relay *relay = argument;
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
        if (poll(fds, 2, LOOK_MS) <= 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            forward(relay, ASTER_RELAY_TO_SERVER, &client, &state);
        }
        if (fds[1].revents != 0) {
            forward(relay, ASTER_RELAY_TO_CLIENT, &client, &state);
        }
    }
    return NULL;
}

aster_status aster_relay_start(struct aster_relay *relay, const struct aster_address *server, struct aster_error *error)
{
    memset(relay, 0, sizeof *relay);
    relay->server = *server;
    relay->near_fd = open_near(&relay->address);
    relay->far_fd = open_far(server);
    int code = relay->near_fd < 0 || relay->far_fd < 0 ? errno : aster_thread_start(&relay->thread, run, relay);
    if (code == 0) {
        relay->started = true;
        return ASTER_OK;
    }
    if (relay->near_fd >= 0) {
        close(relay->near_fd);
    }
    if (relay->far_fd >= 0) {
        close(relay->far_fd);
    }
    return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start a relay on 127.0.0.1");
}

void aster_relay_move(struct aster_relay *relay, const struct aster_address *server)
{
    relay->server = *server; /* the thread looks at it only after it has seen `rebind` */
    atomic_store(&relay->rebind, true);
}

void aster_relay_stop(struct aster_relay *relay)
{
    if (!relay->started) {
        return;
    }
    atomic_store(&relay->stop, true);
    pthread_join(relay->thread, NULL);
    relay->started = false;
    close(relay->near_fd);
    close(relay->far_fd);
}
