#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the sequence that a lead byte starts, and the smallest code point it may encode; 0 = not a lead byte. */
static size_t sequence_length(unsigned char lead, uint32_t *smallest)
{
    if (lead >= 0xc2 && lead <= 0xdf) {
        *smallest = 0x80;
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        *smallest = 0x800;
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        *smallest = 0x10000;
        return 4;
    }
    return 0;
}

/* Length of the acceptable multi-byte sequence at `data`, 0 when there is none. */
static size_t multibyte_valid(const unsigned char *data, size_t left)
{
    uint32_t smallest = 0;
    size_t length = sequence_length(data[0], &smallest);
    if (length == 0 || length > left) {
        return 0;
    }
    uint32_t code = data[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        if ((data[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (data[i] & 0x3fU);
    }
    if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || code <= 0x9f) {
        return 0; /* overlong, out of range, surrogate, or C1 control */
    }
    return length;
}

/* Names are mostly printable ASCII: eight of its bytes at once, or none. A borrow out of a byte comes from one that is
 * refused itself. */
static bool is_plain_word(const unsigned char *data)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones * 0x80;
    uint64_t word;
    memcpy(&word, data, sizeof word);
    uint64_t below_space = word - ones * 0x20;
    uint64_t is_delete = (word ^ ones * 0x7f) - ones;
    return ((word | below_space | is_delete) & tops) == 0;
}

size_t aster_name_bytes_valid(struct aster_bytes name)
{
    const unsigned char *data = name.data;
    size_t at = 0;
    while (at < name.size) {
        if (name.size - at >= sizeof(uint64_t) && is_plain_word(data + at)) {
            at += sizeof(uint64_t);
            continue;
        }
        if (data[at] < 0x80) {
            if (data[at] < 0x20 || data[at] == 0x7f) {
                return at;
            }
            at++;
            continue;
        }
        size_t length = multibyte_valid(data + at, name.size - at);
        if (length == 0) {
            return at;
        }
        at += length;
    }
    return at;
}
