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
    bool json = line->format == GRANTOR_LOG_JSON;
    const char *before = line->used == 0 ? (json ? "{\"" : "") : (json ? ",\"" : " ");
    const char *after = json ? "\":" : "=";
    size_t size = strlen(key);
    return room(line) > strlen(before) + size + strlen(after) && put(line, before, strlen(before)) &&
           put(line, key, size) && put(line, after, strlen(after));
}

/* Bytes at the front that stand for themselves. */
static size_t plain_run(struct aster_bytes value)
{
    const unsigned char *bytes = value.data;
    size_t size = 0;
    while (size < value.size && bytes[size] >= 0x20 && bytes[size] < 0x7f && bytes[size] != '"' &&
           bytes[size] != '\\') {
        size++;
    }
    return size;
}

void grantor_line_bytes(struct grantor_line *line, const char *key, struct aster_bytes value)
{
    char escaped[GRANTOR_ESCAPED_MAX];
    if (!put_key(line, key)) {
        return;
    }
    put(line, "\"", 1);
    while (value.size > 0) {
        size_t taken = plain_run(value);
        size_t written;
        taken = taken < room(line) ? taken : room(line);
        if (taken > 0) {
            put(line, value.data, taken);
        } else {
            taken = grantor_escape(value, escaped, &written);
            if (!put(line, escaped, written)) {
                break;
            }
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
    static _Thread_local time_t second = -1; /* of what `text` begins with: many lines have it in common */
    static _Thread_local char text[64];
    static _Thread_local size_t length;
    struct timespec now;
    line->format = atomic_load_explicit(&chosen, memory_order_relaxed);
    line->used = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        struct tm parts;
        second = now.tv_sec;
        gmtime_r(&second, &parts);
        length = strftime(text, sizeof text - 8, "%Y-%m-%dT%H:%M:%S", &parts);
    }
    snprintf(text + length, sizeof text - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
    grantor_line_text(line, "ts", text);
    grantor_line_text(line, "level", levels[level]);
    grantor_line_text(line, "event", event);
}

/* What a thread has gathered; NULL: it writes line by line. */
static _Thread_local struct grantor_gathering *gathering;

static void write_out(const char *text, size_t size)
{
    ssize_t written = write(atomic_load_explicit(&output, memory_order_relaxed), text, size);
    (void)written; /* there is nowhere to report it */
}

static void flush(struct grantor_gathering *lines)
{
    if (lines->used > 0) {
        write_out(lines->text, lines->used);
        lines->used = 0;
    }
}

void grantor_log_gather(struct grantor_gathering *lines)
{
    if (gathering != NULL) {
        flush(gathering);
    }
    gathering = lines;
}

void grantor_line_end(struct grantor_line *line)
{
    if (line->format == GRANTOR_LOG_JSON) {
        line->text[line->used++] = '}';
    }
    line->text[line->used++] = '\n';
    if (gathering == NULL) {
        write_out(line->text, line->used);
        return;
    }
    if (line->used > sizeof gathering->text - gathering->used) {
        flush(gathering);
    }
    memcpy(gathering->text + gathering->used, line->text, line->used);
    gathering->used += line->used;
}
