/* Refusing file systems on which WAL does not work. */
#ifndef SQLITE_FILESYSTEM_H
#define SQLITE_FILESYSTEM_H

#include <stdint.h>

#include "aster/status.h"

/* `advice` ends the message. Errors: ASTER_ERR_INVALID (a network file system, by name), ASTER_ERR_IO. */
aster_status aster_filesystem_check(const char *path, const char *advice, struct aster_error *error);

/* Where the check gets statfs' f_type from; tests put another function here. */
extern aster_status (*aster_filesystem_probe)(const char *path, uint64_t *magic, struct aster_error *error);

#endif
