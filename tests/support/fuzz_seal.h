/* Bytes with a right check behind them, so that a decoder's rules are fuzzed and not only its check. */
#ifndef SUPPORT_FUZZ_SEAL_H
#define SUPPORT_FUZZ_SEAL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/siphash.h"

/* The check of the format: fixed, part of the encoding. A heap copy of size + 8 bytes; free() it. */
static inline uint8_t *fuzz_seal(const uint8_t *data, size_t size)
{
    static const struct aster_hash_key key = {UINT64_C(0x61737465722d726f), UINT64_C(0x772d636865636b31)};
    uint8_t *sealed = malloc(size + 8);
    if (sealed == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(sealed, data, size);
    }
    uint64_t check = aster_siphash(&key, (struct aster_bytes){data, size});
    for (int i = 0; i < 8; i++) {
        sealed[size + (size_t)i] = (uint8_t)(check >> (8 * i));
    }
    return sealed;
}

#endif
