/* The fence of the last publication, kept beside the published file. */
#ifndef RESOURCE_LAST_FENCE_H
#define RESOURCE_LAST_FENCE_H

#include <stdbool.h>

#include "aster/fence.h"

struct aster_last_fence {
    struct aster_fence fence; /* epoch 0 and empty names when nothing was published yet */
    char storage[ASTER_FENCE_TEXT_MAX];
};

/* Errors: ASTER_ERR_IO, ASTER_ERR_CORRUPT. */
aster_status aster_last_fence_load(const char *path, struct aster_last_fence *last, struct aster_error *error);

/* Errors: ASTER_ERR_IO: the former one is still there. */
aster_status aster_last_fence_store(const char *path, const struct aster_fence *fence, struct aster_error *error);

#endif
