/* The log: logfmt on standard error, one line per event. Any thread. Never a value or a secret. */
#ifndef GRANTOR_LOG_H
#define GRANTOR_LOG_H

#include <stdint.h>

#include "aster/bytes.h"

enum grantor_level { GRANTOR_INFO = 0, GRANTOR_WARNING = 1, GRANTOR_ERROR = 2 };

#define GRANTOR_LINE_MAX 4096

/* One line under construction; what does not fit is cut. */
struct grantor_line {
    char text[GRANTOR_LINE_MAX];
    size_t used;
};

/* Begin with time, level and event. */
void grantor_line_init(struct grantor_line *line, enum grantor_level level, const char *event);
void grantor_line_bytes(struct grantor_line *line, const char *key, struct aster_bytes value); /* quoted and escaped */
void grantor_line_text(struct grantor_line *line, const char *key, const char *value);
void grantor_line_number(struct grantor_line *line, const char *key, int64_t value);
/* Write it out with one call. */
void grantor_line_end(struct grantor_line *line);

#endif
