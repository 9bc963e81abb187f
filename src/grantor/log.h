/* The log: one line per event, as logfmt or as JSON. Any thread. Never a value or a secret. */
#ifndef GRANTOR_LOG_H
#define GRANTOR_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"

enum grantor_level { GRANTOR_INFO = 0, GRANTOR_WARNING = 1, GRANTOR_ERROR = 2 };
enum grantor_log_format { GRANTOR_LOGFMT = 0, GRANTOR_LOG_JSON = 1 };

#define GRANTOR_LINE_MAX 4096

/* One line under construction. A value that does not fit is cut, a field without any room is left out; what is written
 * stays well-formed. */
struct grantor_line {
    enum grantor_log_format format;
    char text[GRANTOR_LINE_MAX];
    size_t used;
};

/* "logfmt" or "json"; false when it is neither. */
bool grantor_log_format_named(const char *name, enum grantor_log_format *format);
/* For the lines that begin from now on; logfmt until it is called. */
void grantor_log_use(enum grantor_log_format format);
/* Where lines go from now on; standard error until it is called. */
void grantor_log_to(int fd);

/* Begin with time, level and event. */
void grantor_line_init(struct grantor_line *line, enum grantor_level level, const char *event);
void grantor_line_bytes(struct grantor_line *line, const char *key, struct aster_bytes value); /* quoted and escaped */
void grantor_line_text(struct grantor_line *line, const char *key, const char *value);
void grantor_line_number(struct grantor_line *line, const char *key, int64_t value);
/* Write it out with one call, alone or with what is gathered. */
void grantor_line_end(struct grantor_line *line);

/* Lines of one thread that are written together, zero to begin with. */
struct grantor_gathering {
    size_t used;
    char text[16 * GRANTOR_LINE_MAX];
};
/* From now on this thread's lines go to `lines`, which is written when it is full; NULL writes what is there, and then
 * each line as it ends. */
void grantor_log_gather(struct grantor_gathering *lines);

#endif
