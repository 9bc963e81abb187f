/* Durations as people write them: "500ms", "30s", "1h30m". Pure. */
#ifndef CLI_DURATION_H
#define CLI_DURATION_H

#include <stddef.h>
#include <stdint.h>

#include "aster/status.h"

/* Read whole milliseconds. Units, from large to small and each at most once: d h m s ms. A bare number is refused,
 * because nobody can tell which unit was meant. Errors: ASTER_ERR_INVALID with what to write instead. */
aster_status aster_duration_parse(const char *text, int64_t *ms, struct aster_error *error);

/* The inverse, exact: "1h30m", "1s500ms", "0ms". */
#define ASTER_DURATION_TEXT_SIZE 64
const char *aster_duration_format(int64_t ms, char text[ASTER_DURATION_TEXT_SIZE]);

#endif
