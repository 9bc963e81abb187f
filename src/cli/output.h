/* What commands print: fields and tables as text for people, or JSON. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

#include "json/json.h"

#define ASTER_TEXT_MAX ASTER_INSTANT_MAX

/* An instant and how long ago it was: "2026-12-01T02:33:27Z (12 s ago)"; "unknown" for 0. */
const char *aster_text_since(int64_t unix_ms, char text[ASTER_TEXT_MAX]);
/* "4.2 s", with one decimal. */
const char *aster_text_seconds(int64_t ns, char text[ASTER_TEXT_MAX]);

/* In single quotes, so that no name can become shell text. */
void aster_print_quoted(struct aster_bytes text, FILE *out);

/* Resource, holder, epoch, since, remaining, value revision: one line each. */
void aster_print_snapshot(const struct aster_snapshot *snapshot, FILE *out);

/* Print and drop it; 0, or the exit status after saying what failed. `flags` as for json_dumpf(). */
int aster_json_print(json_t *json, size_t flags, FILE *out);

/* A table whose columns are as wide as their widest cell. Zero-initialise; rows are copied. */
#define ASTER_TABLE_COLUMNS 8
struct aster_text_table {
    char **cells;
    size_t rows;
    size_t columns; /* set by the first row */
    size_t capacity;
};

/* Add a row of `columns` cells. Errors: ASTER_ERR_NOMEM. */
aster_status aster_text_table_add(struct aster_text_table *table, size_t columns, const char *const *cells);
/* Print, the first row being the heading. */
void aster_text_table_print(const struct aster_text_table *table, FILE *out);
void aster_text_table_free(struct aster_text_table *table);

#endif
