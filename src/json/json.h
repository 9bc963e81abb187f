/* Rows, decisions and events as JSON, the same for the commands and for the server's HTTP port. Times are texts in UTC
 * or numbers with their unit in the key; names are strings. Values are never shown. The objects belong to the caller;
 * NULL when out of memory. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <jansson.h>

#include "aster/serializer.h"

#define ASTER_INSTANT_MAX 96

/* "2026-12-01T02:33:27Z"; "" when unknown (0). */
const char *aster_text_instant(int64_t unix_ms, char text[ASTER_INSTANT_MAX]);

/* Bytes as a string when they are UTF-8, else as {"base64": "..."}. */
json_t *aster_json_bytes(struct aster_bytes bytes);
json_t *aster_json_snapshot(const struct aster_snapshot *snapshot);
json_t *aster_json_decision(const struct aster_decision *decision);
json_t *aster_json_event(const struct aster_event *event);

#endif
