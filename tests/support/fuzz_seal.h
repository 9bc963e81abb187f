/* Bytes with a right check behind them, so that a decoder's rules are fuzzed and not only its check. */
#ifndef SUPPORT_FUZZ_SEAL_H
#define SUPPORT_FUZZ_SEAL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/codec.h"

/* A heap copy of size + 8 bytes; free() it. */
static inline uint8_t *fuzz_seal(const uint8_t *data, size_t size)
{
    uint8_t *sealed = malloc(size + 8);
    if (sealed == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(sealed, data, size);
    }
    uint64_t check = aster_encoding_check((struct aster_bytes){data, size});
    for (int i = 0; i < 8; i++) {
        sealed[size + (size_t)i] = (uint8_t)(check >> (8 * i));
    }
    return sealed;
}

#endif
