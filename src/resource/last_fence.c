#include "resource/last_fence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/private_file.h"

#define FILE_MODE 0644 /* no secret: whoever may read the file may see who published it */

aster_status aster_last_fence_load(const char *path, struct aster_last_fence *last, struct aster_error *error)
{
    char *text = NULL;
    size_t size = 0;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        last->fence = (struct aster_fence){{NULL, 0}, 0, {NULL, 0}};
        return ASTER_OK;
    }
    aster_status status = aster_private_file_read(path, ASTER_FENCE_TEXT_MAX, false, &text, &size, error);
    if (status != ASTER_OK) {
        return status;
    }
    text[strcspn(text, "\n")] = '\0';
    struct aster_error why = ASTER_ERROR_INIT;
    if (aster_fence_parse(text, last->storage, sizeof last->storage, &last->fence, &why) != ASTER_OK) {
        status = aster_error_set(error, ASTER_ERR_CORRUPT,
                                 "%s is not what a publication leaves (%.200s): find out the epoch of the file that is "
                                 "there, and write its fence",
                                 path, why.message);
    }
    free(text);
    return status;
}

aster_status aster_last_fence_store(const char *path, const struct aster_fence *fence, struct aster_error *error)
{
    char text[ASTER_FENCE_TEXT_MAX + 1];
    aster_status status = aster_fence_format(fence, text, sizeof text - 1, error);
    if (status != ASTER_OK) {
        return status;
    }
    strcat(text, "\n");
    return aster_private_file_write(path, aster_text(text), FILE_MODE, true, error);
}
