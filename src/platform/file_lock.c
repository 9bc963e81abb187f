#include "platform/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <unistd.h>

#include "aster/sys/clock.h"
#include "base/checked.h"
#include "base/error.h"
#include "platform/files.h"

#define PAUSE_NS INT64_C(2000000) /* flock() has no timeout: ask again */

aster_status aster_file_lock_take(const char *path, int64_t timeout_ms, int *lock, struct aster_error *error)
{
    const struct aster_clock *clock = aster_clock_system();
    int64_t end_ns = aster_clock_now_ns(clock) + timeout_ms * ASTER_NS_PER_MS;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot open the lock %s", path);
    }
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            int code = errno;
            close(fd);
            return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot lock %s", path);
        }
        if (aster_clock_now_ns(clock) >= end_ns) {
            close(fd);
            return aster_error_set(error, ASTER_ERR_BUSY,
                                   "another process keeps %s locked for more than %" PRId64
                                   " ms; `fuser %s` tells which",
                                   path, timeout_ms, path);
        }
        aster_pause_ns(PAUSE_NS);
    }
    *lock = fd;
    return ASTER_OK;
}

void aster_file_lock_release(int lock)
{
    close(lock);
}
