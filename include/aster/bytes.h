/* A borrowed view of bytes: names, identities and values carry their length, so that a NUL inside a name is seen and
 * refused instead of cutting the name short. A view owns nothing; who owns the bytes, and for how long, is said where
 * the view is used. Thread-safety: a plain value. */
#ifndef ASTER_BYTES_H
#define ASTER_BYTES_H

#include <stddef.h>
#include <string.h>

#include "aster/export.h"

ASTER_BEGIN_DECLS

struct aster_bytes {
    const void *data; /* may be NULL when size is 0 */
    size_t size;      /* bytes */
};

/* A view of a NUL-terminated string, without the NUL. NULL gives the empty view. */
static inline struct aster_bytes aster_text(const char *text)
{
    struct aster_bytes bytes;
    bytes.data = text;
    bytes.size = text != NULL ? strlen(text) : 0;
    return bytes;
}

/* Byte-by-byte equality: no normalisation, no case folding (docs/rules.md: names are compared byte by byte). */
static inline int aster_bytes_equal(struct aster_bytes a, struct aster_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Byte order, which is that of lists: negative, 0 or positive, as memcmp(); a prefix comes before what it begins. */
static inline int aster_bytes_compare(struct aster_bytes a, struct aster_bytes b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

ASTER_END_DECLS

#endif
