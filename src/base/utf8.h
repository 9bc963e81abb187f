/* The rule for names: valid UTF-8 without control characters. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "aster/bytes.h"

/* Offset of the first byte of a sequence that is not acceptable in a name (ill-formed, overlong, surrogate, beyond
 * U+10FFFF, or a control character U+0000..U+001F, U+007F..U+009F); name.size when all of it is. */
size_t aster_name_bytes_valid(struct aster_bytes name);

#endif
