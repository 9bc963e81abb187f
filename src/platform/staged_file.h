/* A file that is written aside and then put in place in one step, so that a reader or a crash meets the old content or
 * the new one. */
#ifndef PLATFORM_STAGED_FILE_H
#define PLATFORM_STAGED_FILE_H

#include <limits.h>

#include "aster/status.h"

struct aster_staged_file {
    char path[PATH_MAX]; /* where it is written; empty = nothing there */
    char target[PATH_MAX];
};

/* Copy `source` to a new file in the directory of `target` and make it durable. What crashed processes left there more
 * than a day ago is removed. Errors: ASTER_ERR_INVALID (`target` is there and no regular file, or too long),
 * ASTER_ERR_IO. */
aster_status aster_staged_file_copy(struct aster_staged_file *staged, const char *source, const char *target,
                                    struct aster_error *error);

/* Put it in place, durably. Errors: ASTER_ERR_IO: the target is as before. */
aster_status aster_staged_file_place(struct aster_staged_file *staged, struct aster_error *error);

/* Remove what was not put in place. A zeroed one is legal. */
void aster_staged_file_discard(struct aster_staged_file *staged);

#endif
