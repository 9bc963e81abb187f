#include "grantor/log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "grantor/escape.h"

#define TAIL 3 /* a closing quote, a closing brace and the newline always fit */

static _Atomic(enum grantor_log_format) chosen = GRANTOR_LOGFMT;
static _Atomic(int) output = STDERR_FILENO;

bool grantor_log_format_named(const char *name, enum grantor_log_format *format)
{
    bool json = strcmp(name, "json") == 0;
    if (!json && strcmp(name, "logfmt") != 0) {
        return false;
    }
    *format = json ? GRANTOR_LOG_JSON : GRANTOR_LOGFMT;
    return true;
}

void grantor_log_use(enum grantor_log_format format)
{
    atomic_store_explicit(&chosen, format, memory_order_relaxed);
}

void grantor_log_to(int fd)
{
    atomic_store_explicit(&output, fd, memory_order_relaxed);
}

static size_t room(const struct grantor_line *line)
{
    const size_t limit = sizeof line->text - TAIL;
    return line->used < limit ? limit - line->used : 0;
}

/* All of it or nothing. */
static bool put(struct grantor_line *line, const char *text, size_t size)
{
    if (size > room(line)) {
        return false;
    }
    memcpy(line->text + line->used, text, size);
    line->used += size;
    return true;
}

static bool put_key(struct grantor_line *line, const char *key)
{
    char text[64];
    bool json = line->format == GRANTOR_LOG_JSON;
    const char *gap = line->used == 0 ? (json ? "{" : "") : (json ? "," : " ");
    int length = snprintf(text, sizeof text, json ? "%s\"%s\":" : "%s%s=", gap, key);
    return room(line) > (size_t)length && put(line, text, (size_t)length);
}

void grantor_line_bytes(struct grantor_line *line, const char *key, struct aster_bytes value)
{
    char escaped[GRANTOR_ESCAPED_MAX];
    if (!put_key(line, key)) {
        return;
    }
    put(line, "\"", 1);
    while (value.size > 0) {
        size_t written;
        size_t taken = grantor_escape(value, escaped, &written);
        if (!put(line, escaped, written)) {
            break;
        }
        value = (struct aster_bytes){(const char *)value.data + taken, value.size - taken};
    }
    line->text[line->used++] = '"'; /* from the tail */
}

static bool is_plain(const char *value)
{
    for (const char *at = value; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 0x7f || *at == '"' || *at == '\\' || *at == '=') {
            return false;
        }
    }
    return value[0] != '\0';
}

void grantor_line_text(struct grantor_line *line, const char *key, const char *value)
{
    size_t size = strlen(value);
    if (line->format == GRANTOR_LOG_JSON || !is_plain(value) || size + strlen(key) + 2 > room(line)) {
        grantor_line_bytes(line, key, aster_text(value));
    } else if (put_key(line, key)) {
        put(line, value, size);
    }
}

void grantor_line_number(struct grantor_line *line, const char *key, int64_t value)
{
    char text[32];
    size_t size = (size_t)snprintf(text, sizeof text, "%" PRId64, value);
    if (size + strlen(key) + 4 <= room(line) && put_key(line, key)) {
        put(line, text, size);
    }
}

void grantor_line_init(struct grantor_line *line, enum grantor_level level, const char *event)
{
    static const char *const levels[] = {"info", "warning", "error"};
    struct timespec now;
    struct tm parts;
    char text[64];
    line->format = atomic_load_explicit(&chosen, memory_order_relaxed);
    line->used = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + length, sizeof text - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
    grantor_line_text(line, "ts", text);
    grantor_line_text(line, "level", levels[level]);
    grantor_line_text(line, "event", event);
}

void grantor_line_end(struct grantor_line *line)
{
    if (line->format == GRANTOR_LOG_JSON) {
        line->text[line->used++] = '}';
    }
    line->text[line->used++] = '\n';
    ssize_t written = write(atomic_load_explicit(&output, memory_order_relaxed), line->text, line->used);
    (void)written; /* there is nowhere to report it */
}
