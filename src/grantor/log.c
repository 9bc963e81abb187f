#include "grantor/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void put(struct grantor_line *line, const char *text, size_t size)
{
    size_t room = sizeof line->text - 1 - line->used; /* the newline always fits */
    size_t taken = size < room ? size : room;
    memcpy(line->text + line->used, text, taken);
    line->used += taken;
}

static void put_text(struct grantor_line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void put_key(struct grantor_line *line, const char *key)
{
    put_text(line, " ");
    put_text(line, key);
    put_text(line, "=");
}

void grantor_line_init(struct grantor_line *line, enum grantor_level level, const char *event)
{
    static const char *const levels[] = {"info", "warning", "error"};
    struct timespec now;
    struct tm parts;
    char text[64];
    line->used = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(text, sizeof text, "ts=%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + length, sizeof text - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
    put_text(line, text);
    grantor_line_text(line, "level", levels[level]);
    grantor_line_text(line, "event", event);
}

void grantor_line_bytes(struct grantor_line *line, const char *key, struct aster_bytes value)
{
    const unsigned char *bytes = value.data;
    put_key(line, key);
    put_text(line, "\"");
    for (size_t i = 0; i < value.size; i++) {
        char escaped[8];
        if (bytes[i] == '"' || bytes[i] == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", bytes[i]);
        } else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\x%02x", bytes[i]);
        } else {
            snprintf(escaped, sizeof escaped, "%c", bytes[i]);
        }
        put_text(line, escaped);
    }
    put_text(line, "\"");
}

void grantor_line_text(struct grantor_line *line, const char *key, const char *value)
{
    if (value[0] == '\0' || strpbrk(value, " \"\\=") != NULL) {
        grantor_line_bytes(line, key, aster_text(value));
        return;
    }
    put_key(line, key);
    put_text(line, value);
}

void grantor_line_number(struct grantor_line *line, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    put_key(line, key);
    put_text(line, text);
}

void grantor_line_end(struct grantor_line *line)
{
    line->text[line->used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line->text, line->used);
    (void)written; /* there is nowhere to report it */
}
