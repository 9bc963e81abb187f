#include "platform/sleeper.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"

aster_status aster_sleeper_init(struct aster_sleeper *sleeper, struct aster_error *error)
{
    int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create a timer descriptor");
    }
    int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        int code = errno;
        close(timer_fd);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot create an event descriptor");
    }
    sleeper->timer_fd = timer_fd;
    sleeper->event_fd = event_fd;
    return ASTER_OK;
}

void aster_sleeper_fini(struct aster_sleeper *sleeper)
{
    close(sleeper->timer_fd);
    close(sleeper->event_fd);
}

void aster_sleeper_sleep(struct aster_sleeper *sleeper, int64_t until_ns)
{
    struct itimerspec spec = {{0, 0}, {0, 0}}; /* zero disarms */
    if (until_ns != INT64_MAX) {
        if (until_ns < 1) {
            until_ns = 1;
        }
        spec.it_value.tv_sec = until_ns / 1000000000;
        spec.it_value.tv_nsec = until_ns % 1000000000;
    }
    timerfd_settime(sleeper->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    struct pollfd fds[2] = {{sleeper->timer_fd, POLLIN, 0}, {sleeper->event_fd, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    uint64_t count;
    if (read(sleeper->event_fd, &count, sizeof count) < 0) {
        return; /* EAGAIN: the timer woke us */
    }
}

void aster_sleeper_wake(struct aster_sleeper *sleeper)
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(sleeper->event_fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
}
