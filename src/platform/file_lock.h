/* One holder among the processes of a host, by flock() on a file that stays. */
#ifndef PLATFORM_FILE_LOCK_H
#define PLATFORM_FILE_LOCK_H

#include <stdint.h>

#include "aster/status.h"

/* Wait at most `timeout_ms` for the lock of `path`, which is created when it is missing; *lock is for release(). The
 * kernel releases it when the process ends. Errors: ASTER_ERR_BUSY, ASTER_ERR_IO. */
aster_status aster_file_lock_take(const char *path, int64_t timeout_ms, int *lock, struct aster_error *error);
void aster_file_lock_release(int lock);

#endif
