/* Every fence has one text: what parses formats to the same text again. */
#include <stdint.h>
#include <stdlib.h>

#include "aster/fence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char storage[1024];
    char again[ASTER_FENCE_TEXT_MAX];
    struct aster_fence fence;
    char *text = malloc(size + 1);
    if (text == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    if (aster_fence_parse(text, storage, sizeof storage, &fence, NULL) == ASTER_OK &&
        (aster_fence_format(&fence, again, sizeof again, NULL) != ASTER_OK || strcmp(text, again) != 0)) {
        abort();
    }
    free(text);
    return 0;
}
