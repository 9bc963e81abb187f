/* Names and epochs as text that survives an environment variable, a header and a shell: bytes outside [A-Za-z0-9._~/@-]
 * are written as %XX. Pure. */
#ifndef ENGINE_ESCAPE_H
#define ENGINE_ESCAPE_H

#include <stdbool.h>

#include "engine/cursor.h"

/* Append the text of `bytes`; a full writer says so itself. */
void aster_escape_write(struct aster_writer *writer, struct aster_bytes bytes);

/* Append the bytes that the text from `text` to `end` stands for; false when it is malformed or does not fit. */
bool aster_escape_read(const char *text, const char *end, struct aster_writer *writer);

/* A decimal epoch, 0 to INT64_MAX, without sign or leading zeros; false when it is anything else. */
bool aster_epoch_read(const char *text, const char *end, int64_t *epoch);

#endif
