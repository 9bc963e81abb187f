/* Filling in error detail: one line that says what, which value, which limit, what next. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "aster/bytes.h"
#include "aster/status.h"

/* Write `status` and the formatted message to `error` (may be NULL) and return `status`. Cuts at the buffer's end. */
aster_status aster_error_set(struct aster_error *error, aster_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the errno of the failing call, whose text is appended, or put before what follows the last "; ": the
 * cause comes before the advice. */
aster_status aster_error_set_os(struct aster_error *error, aster_status status, int os_error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* `bytes` for a message: cut to a readable length, control and non-ASCII-printable bytes as \xNN. Writes to the
 * caller's buffer and returns it. */
#define ASTER_PRINTABLE_MAX 160
const char *aster_printable(struct aster_bytes bytes, char buffer[ASTER_PRINTABLE_MAX]);

#endif
