#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_LEAST 4096

int socket_connect(int port)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

enum outcome socket_send(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            size -= (size_t)sent;
        } else if (errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            poll(&writable, 1, 1000);
        } else if (errno != EINTR) {
            return OUTCOME_ERROR;
        }
    }
    return OUTCOME_PENDING;
}

/* Room for `more` bytes at the end; what was taken is given up first. */
static void make_room(struct buffer *buffer, size_t more)
{
    if (buffer->taken > 0) {
        buffer->size -= buffer->taken;
        memmove(buffer->data, buffer->data + buffer->taken, buffer->size);
        buffer->taken = 0;
    }
    if (buffer->capacity - buffer->size < more) {
        buffer->capacity = (buffer->size + more) * 2;
        buffer->data = realloc(buffer->data, buffer->capacity);
        if (buffer->data == NULL) {
            die("out of memory");
        }
    }
}

int buffer_fill(struct buffer *buffer, int fd)
{
    for (int got = 0;;) {
        make_room(buffer, READ_LEAST);
        size_t room = buffer->capacity - buffer->size;
        ssize_t size = recv(fd, buffer->data + buffer->size, room, 0);
        if (size > 0) {
            buffer->size += (size_t)size;
            got = 1;
            if ((size_t)size < room) {
                return got;
            }
        } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
            return -1;
        } else if (errno == EAGAIN) {
            return got;
        }
    }
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    make_room(buffer, size);
    if (size > 0) {
        memcpy(buffer->data + buffer->size, data, size);
        buffer->size += size;
    }
}

void buffer_take(struct buffer *buffer, size_t size)
{
    buffer->taken += size;
    if (buffer->taken == buffer->size) {
        buffer->taken = buffer->size = 0;
    }
}
