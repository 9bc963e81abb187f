#include "cli/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aster/sys/clock.h"
#include "base/error.h"
#include "cli/exit.h"

const char *aster_text_since(int64_t unix_ms, char text[ASTER_TEXT_MAX])
{
    aster_text_instant(unix_ms, text);
    if (text[0] == '\0') {
        snprintf(text, ASTER_TEXT_MAX, "unknown");
        return text;
    }
    int64_t age_s = (aster_clock_unix_ms(aster_clock_system()) - unix_ms) / 1000;
    size_t used = strlen(text);
    if (age_s < 0) {
        snprintf(text + used, ASTER_TEXT_MAX - used, " (the clock was set back)");
    } else if (age_s < 120) {
        snprintf(text + used, ASTER_TEXT_MAX - used, " (%" PRId64 " s ago)", age_s);
    } else if (age_s < 7200) {
        snprintf(text + used, ASTER_TEXT_MAX - used, " (%" PRId64 " min ago)", age_s / 60);
    } else {
        snprintf(text + used, ASTER_TEXT_MAX - used, " (%" PRId64 " h ago)", age_s / 3600);
    }
    return text;
}

const char *aster_text_seconds(int64_t ns, char text[ASTER_TEXT_MAX])
{
    int64_t tenths = ns / 100000000;
    snprintf(text, ASTER_TEXT_MAX, "%" PRId64 ".%" PRId64 " s", tenths / 10, tenths % 10);
    return text;
}

void aster_print_quoted(struct aster_bytes text, FILE *out)
{
    const char *bytes = text.data;
    fputc('\'', out);
    for (size_t i = 0; i < text.size; i++) {
        if (bytes[i] == '\'') {
            fputs("'\\''", out);
        } else {
            fputc(bytes[i], out);
        }
    }
    fputc('\'', out);
}

/* Names are valid UTF-8 without control characters, so a terminal can show them as they are. */
static void field(FILE *out, const char *name, struct aster_bytes value)
{
    fprintf(out, "%-15s%.*s\n", name, (int)value.size, (const char *)value.data);
}

void aster_print_snapshot(const struct aster_snapshot *snapshot, FILE *out)
{
    char text[ASTER_TEXT_MAX];
    field(out, "resource", snapshot->resource);
    field(out, "holder", snapshot->held ? snapshot->holder : aster_text("- (free)"));
    fprintf(out, "%-15s%" PRId64 "\n", "epoch", snapshot->epoch);
    if (snapshot->held) {
        fprintf(out, "%-15s%s\n", "since", aster_text_since(snapshot->since_unix_ms, text));
        fprintf(out, "%-15s%s of %" PRId64 ".%" PRId64 " s%s\n", "remaining",
                aster_text_seconds(snapshot->remaining_ns, text), snapshot->ttl_ms / 1000,
                snapshot->ttl_ms % 1000 / 100,
                snapshot->remaining_ns == 0 ? " (expired: the next acquire gets it)" : "");
    } else if (snapshot->last_holder.size > 0) {
        fprintf(out, "%-15s%.*s, epoch %" PRId64 "\n", "last holder", (int)snapshot->last_holder.size,
                (const char *)snapshot->last_holder.data, snapshot->last_epoch_held);
    }
    fprintf(out, "%-15s%" PRId64 "\n", "value revision", snapshot->value_revision);
}

void aster_text_table_free(struct aster_text_table *table)
{
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    memset(table, 0, sizeof *table);
}

aster_status aster_text_table_add(struct aster_text_table *table, size_t columns, const char *const *cells)
{
    table->columns = table->rows == 0 ? columns : table->columns;
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity == 0 ? 32 : 2 * table->capacity;
        char **grown = realloc(table->cells, capacity * table->columns * sizeof *grown);
        if (grown == NULL) {
            return ASTER_ERR_NOMEM;
        }
        table->cells = grown;
        table->capacity = capacity;
    }
    char **row = table->cells + table->rows * table->columns;
    for (size_t i = 0; i < table->columns; i++) {
        row[i] = strdup(cells[i]);
        if (row[i] == NULL) {
            while (i > 0) {
                free(row[--i]);
            }
            return ASTER_ERR_NOMEM;
        }
    }
    table->rows++;
    return ASTER_OK;
}

/* Columns on the screen, roughly: one per code point. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

void aster_text_table_print(const struct aster_text_table *table, FILE *out)
{
    size_t widths[ASTER_TABLE_COLUMNS] = {0};
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        size_t width = width_of(table->cells[i]);
        size_t *widest = &widths[i % table->columns];
        *widest = width > *widest ? width : *widest;
    }
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            const char *cell = table->cells[row * table->columns + column];
            bool last = column + 1 == table->columns;
            fputs(cell, out);
            fprintf(out, "%*s", last ? 0 : (int)(widths[column] - width_of(cell)) + 2, "");
        }
        fputc('\n', out);
    }
}

int aster_json_print(json_t *json, size_t flags, FILE *out)
{
    int failed = json == NULL || json_dumpf(json, out, flags) != 0 || fputc('\n', out) == EOF;
    json_decref(json);
    if (failed) {
        fputs("aster: cannot write the JSON\n", stderr);
        return ASTER_EXIT_IO;
    }
    return ASTER_EXIT_OK;
}
