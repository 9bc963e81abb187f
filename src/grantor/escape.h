/* Text inside double quotes, for logfmt and JSON alike. Pure. */
#ifndef GRANTOR_ESCAPE_H
#define GRANTOR_ESCAPE_H

#include "aster/bytes.h"

#define GRANTOR_ESCAPED_MAX 12 /* bytes that one step writes at most */

/* Take the first character of `text`, which must not be empty: write it as it stands inside a JSON string to `out`,
 * give the number of bytes written, and return how many bytes of `text` it was. Quotes, backslashes, and whatever could
 * change a line, a terminal or the order of what is read (controls, line separators, bidirectional marks) become
 * \uXXXX; a byte that is not UTF-8 becomes U+FFFD. */
size_t grantor_escape(struct aster_bytes text, char out[GRANTOR_ESCAPED_MAX], size_t *written);

#endif
