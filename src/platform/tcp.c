#include "platform/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/error.h"

#define BACKLOG 1024

aster_status aster_tcp_listen(const struct aster_address *local, int *fd, struct aster_address *bound,
                              struct aster_error *error)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    struct aster_address found = {.size = sizeof found.storage};
    int one = 1;
    int made = socket(local->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create a TCP socket");
    }
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); /* only quickens a restart */
    if (bind(made, &local->any, local->size) != 0 || listen(made, BACKLOG) != 0 ||
        getsockname(made, &found.any, &found.size) != 0) {
        int code = errno;
        close(made);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot listen on TCP %s",
                                  aster_address_text(local, text));
    }
    *fd = made;
    *bound = found;
    return ASTER_OK;
}

aster_status aster_tcp_connect(const struct aster_address *remote, int *fd, struct aster_error *error)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    int made = socket(remote->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create a TCP socket");
    }
    if (connect(made, &remote->any, remote->size) != 0 && errno != EINPROGRESS) {
        int code = errno;
        close(made);
        return aster_error_set_os(error, ASTER_ERR_UNREACHABLE, code, "cannot connect to %s",
                                  aster_address_text(remote, text));
    }
    *fd = made;
    return ASTER_OK;
}

int aster_tcp_accept(int fd, struct aster_address *remote)
{
    remote->size = sizeof remote->storage;
    int accepted = accept4(fd, &remote->any, &remote->size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return accepted >= 0 ? accepted : -errno;
}

int aster_tcp_connected(int fd)
{
    int code = 0;
    socklen_t size = sizeof code;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

static void set_option(int fd, int level, int name, int64_t value)
{
    int number = value > INT32_MAX ? INT32_MAX : (int)value;
    (void)setsockopt(fd, level, name, &number,
                     sizeof number); /* a socket that has just been reset refuses; its end follows */
}

void aster_tcp_tune(int fd, int64_t keep_alive_ms, int64_t idle_timeout_ms)
{
    int64_t idle_s = keep_alive_ms / 1000 > 0 ? keep_alive_ms / 1000 : 1;
    int64_t probes = idle_timeout_ms / 1000 - idle_s;
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, probes > 0 ? probes : 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, idle_timeout_ms);
}
