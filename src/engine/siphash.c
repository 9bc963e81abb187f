#include "engine/siphash.h"

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static inline uint64_t load_little_endian(const unsigned char *data, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)data[i] << (8 * i);
    }
    return word;
}

/* One load where the machine is little-endian, which is where speed matters. */
static inline uint64_t load_word(const unsigned char *data)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
#else
    return load_little_endian(data, 8);
#endif
}

static inline void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_of(v);
    round_of(v);
    v[0] ^= word;
}

uint64_t aster_siphash(const struct aster_hash_key *key, struct aster_bytes bytes)
{
    uint64_t v[4] = {key->k0 ^ UINT64_C(0x736f6d6570736575), key->k1 ^ UINT64_C(0x646f72616e646f6d),
                     key->k0 ^ UINT64_C(0x6c7967656e657261), key->k1 ^ UINT64_C(0x7465646279746573)};
    const unsigned char *data = bytes.data;
    size_t left = bytes.size;
    for (; left >= 8; left -= 8, data += 8) {
        absorb(v, load_word(data));
    }
    absorb(v, (uint64_t)(bytes.size & 0xff) << 56 | load_little_endian(data, left));
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        round_of(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
