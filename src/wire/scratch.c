#include "wire/scratch.h"

#include <stdalign.h>

void *aster_scratch_take(struct aster_scratch *scratch, size_t size)
{
    size_t start = (scratch->used + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (start > scratch->size || size > scratch->size - start) {
        return NULL;
    }
    scratch->used = start + size;
    return scratch->data + start;
}
