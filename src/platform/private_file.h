/* Small files that hold a secret, or stand beside one. */
#ifndef PLATFORM_PRIVATE_FILE_H
#define PLATFORM_PRIVATE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "aster/bytes.h"
#include "aster/status.h"

/* Create `directory` with mode 0700 if nothing is there. Errors: ASTER_ERR_IO. */
aster_status aster_private_directory(const char *directory, struct aster_error *error);

/* Write `content` to `path` so that a crash leaves the old file or the new one, never a part. `mode` is 0600 for a
 * secret. Without `replace` an existing file is kept and refused with ASTER_ERR_INVALID. Errors: ASTER_ERR_IO. */
aster_status aster_private_file_write(const char *path, struct aster_bytes content, mode_t mode, bool replace,
                                      struct aster_error *error);

/* The same in two steps, for those who do something in between that needs the second to succeed: with the draft written
 * and synced there is room for it. `temporary` is what place() or discard() takes. */
#define ASTER_PRIVATE_PATH_MAX 4096
aster_status aster_private_file_draft(const char *path, struct aster_bytes content, mode_t mode,
                                      char temporary[ASTER_PRIVATE_PATH_MAX], struct aster_error *error);
aster_status aster_private_file_place(const char *temporary, const char *path, bool replace, struct aster_error *error);
void aster_private_file_discard(const char *temporary);

/* Read a file of at most `max` bytes into memory from malloc, which the caller frees (*size bytes and a NUL). With
 * `secret` it is refused, with ASTER_ERR_INVALID, when anyone but its owner could read or change it, or when the owner
 * is neither this user nor root. Errors: ASTER_ERR_IO, ASTER_ERR_LIMIT, ASTER_ERR_NOMEM. */
aster_status aster_private_file_read(const char *path, size_t max, bool secret, char **content, size_t *size,
                                     struct aster_error *error);

#endif
