/* Where a randomised test begins: the same place every time, or where ASTER_SEED says (scripts/soak sets it, and prints
 * it when a test fails). */
#ifndef SUPPORT_SEED_H
#define SUPPORT_SEED_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t test_seed(uint64_t otherwise)
{
    const char *text = getenv("ASTER_SEED");
    return text != NULL ? strtoull(text, NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + otherwise : otherwise;
}

#endif
