#include "platform/entropy.h"

#include <errno.h>
#include <sys/random.h>

#include "base/error.h"

aster_status aster_entropy_fill(void *data, size_t size, struct aster_error *error)
{
    unsigned char *at = data;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot read random bytes from the kernel");
        }
        at += got;
        size -= (size_t)got;
    }
    return ASTER_OK;
}
