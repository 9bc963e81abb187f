/* SipHash-2-4, the keyed hash for names that clients choose: without the key nobody can make them collide. */
#ifndef ENGINE_SIPHASH_H
#define ENGINE_SIPHASH_H

#include <stdint.h>

#include "aster/bytes.h"

struct aster_hash_key {
    uint64_t k0;
    uint64_t k1;
};

uint64_t aster_siphash(const struct aster_hash_key *key, struct aster_bytes bytes);

#endif
