#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What to do next follows the last "; "; without one, the end. */
static const char *last_advice(const char *message)
{
    const char *found = message + strlen(message);
    for (const char *at = strstr(message, "; "); at != NULL; at = strstr(at + 1, "; ")) {
        found = at;
    }
    return found;
}

static void set_message(struct aster_error *error, aster_status status, int os_error, const char *format, va_list args)
{
    error->status = status;
    error->os_error = os_error;
    int length = vsnprintf(error->message, sizeof error->message, format, args);
    if (os_error == 0 || length < 0 || (size_t)length >= sizeof error->message) {
        return;
    }
    char advice[ASTER_ERROR_MESSAGE_MAX];
    const char *advice_at = last_advice(error->message);
    snprintf(advice, sizeof advice, "%s", advice_at);
    /* strerrordesc_np is thread-safe and never allocates, unlike strerror. */
    const char *text = strerrordesc_np(os_error);
    size_t used = (size_t)(advice_at - error->message);
    snprintf(error->message + used, sizeof error->message - used, ": %s%s", text != NULL ? text : "unknown", advice);
}

aster_status aster_error_set(struct aster_error *error, aster_status status, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        set_message(error, status, 0, format, args);
        va_end(args);
    }
    return status;
}

aster_status aster_error_set_os(struct aster_error *error, aster_status status, int os_error, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        set_message(error, status, os_error, format, args);
        va_end(args);
    }
    return status;
}

const char *aster_printable(struct aster_bytes bytes, char buffer[ASTER_PRINTABLE_MAX])
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *data = bytes.data;
    size_t used = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        if (used + 8 > ASTER_PRINTABLE_MAX) { /* room for one escape, the dots and the NUL */
            memcpy(buffer + used, "...", 3);
            used += 3;
            break;
        }
        if (data[i] >= 0x20 && data[i] < 0x7f) {
            buffer[used++] = (char)data[i];
        } else {
            buffer[used++] = '\\';
            buffer[used++] = 'x';
            buffer[used++] = digits[data[i] >> 4];
            buffer[used++] = digits[data[i] & 15];
        }
    }
    buffer[used] = '\0';
    return buffer;
}
