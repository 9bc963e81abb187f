#include "platform/service.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_MAX 1024

void aster_service_notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path != NULL ? strlen(path) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || length < 0 || (size_t)length >= sizeof text) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    memcpy(address.sun_path, path, size);
    if (path[0] == '@') { /* an abstract socket: no file, and no NUL at the end of the name */
        address.sun_path[0] = '\0';
    }
    socklen_t address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    ssize_t sent = sendto(fd, text, (size_t)length, MSG_NOSIGNAL, (const struct sockaddr *)&address, address_size);
    (void)sent; /* the manager notices what it misses */
    close(fd);
}

static int64_t number_in(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long long value = text != NULL ? strtoll(text, &end, 10) : 0;
    return end != NULL && end != text && *end == '\0' ? value : 0;
}

int64_t aster_service_watchdog_ns(void)
{
    int64_t wait_us = number_in("WATCHDOG_USEC");
    int64_t pid = number_in("WATCHDOG_PID"); /* absent: it is us */
    if (wait_us <= 0 || wait_us > INT64_MAX / 1000 || (pid != 0 && pid != getpid())) {
        return 0;
    }
    return wait_us * 1000;
}
