#include "grantor/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

/* Bytes that the first one asks for, as far as they are there. */
static size_t announced(struct aster_bytes text)
{
    const unsigned char lead = *(const unsigned char *)text.data;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return length <= text.size ? length : text.size;
}

static uint32_t decode(const unsigned char *bytes, size_t length)
{
    uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        code = code << 6 | (bytes[i] & 0x3fU);
    }
    return code;
}

/* A name has none of these, but other text may. */
static bool is_control(const unsigned char *bytes, size_t length)
{
    return length == 1 ? bytes[0] < 0x20 || bytes[0] == 0x7f
                       : length == 2 && bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f;
}

/* A name may have these, and a line of a log may not: invisible, a new line for some, or turning the text around. */
static bool misleads(uint32_t code)
{
    return code == 0x61c || code == 0xfeff || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f);
}

size_t grantor_escape(struct aster_bytes text, char out[GRANTOR_ESCAPED_MAX], size_t *written)
{
    const unsigned char *bytes = text.data;
    size_t length = announced(text);
    uint32_t code = decode(bytes, length);
    if (code == '"' || code == '\\') {
        *written = (size_t)snprintf(out, GRANTOR_ESCAPED_MAX, "\\%c", (char)code);
    } else if (is_control(bytes, length)) {
        *written = (size_t)snprintf(out, GRANTOR_ESCAPED_MAX, "\\u%04x", (unsigned)code);
    } else if (aster_name_bytes_valid((struct aster_bytes){bytes, length}) != length) {
        *written = (size_t)snprintf(out, GRANTOR_ESCAPED_MAX, "\\ufffd");
        length = 1;
    } else if (misleads(code)) {
        *written = (size_t)snprintf(out, GRANTOR_ESCAPED_MAX, "\\u%04x", (unsigned)code);
    } else {
        memcpy(out, bytes, length);
        *written = length;
    }
    return length;
}
