/* What `aster run` says on standard error, where it is out of the way of the command's output. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "aster/sys/clock.h"
#include "cli/output.h"
#include "cli/run/run.h"

#define LINE_MAX_BYTES 2048

/* One call to the stream, so that lines of the command do not come in between. */
static void print_json(const struct aster_run *run, const char *event, const char *text)
{
    char at[ASTER_TEXT_MAX];
    struct aster_lease_report report = {0};
    if (run->lease != NULL) {
        aster_lease_report_get(run->lease, &report);
    }
    json_t *json = json_pack(
        "{s:s, s:s, s:o, s:I, s:s}", "at", aster_text_instant(aster_clock_unix_ms(aster_clock_system()), at), "event",
        event, "resource", aster_json_bytes(run->resource), "epoch", (json_int_t)report.epoch, "text", text);
    char *line = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    fprintf(stderr, "%s\n", line != NULL ? line : "{}");
    free(line);
    json_decref(json);
}

static void print(const struct aster_run *run, const char *event, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void print(const struct aster_run *run, const char *event, const char *format, va_list args)
{
    char text[LINE_MAX_BYTES];
    vsnprintf(text, sizeof text, format, args);
    if (run->json) {
        print_json(run, event, text);
    } else {
        fprintf(stderr, "aster run: %s\n", text);
    }
}

void aster_run_say(const struct aster_run *run, const char *event, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(run, event, format, args);
    va_end(args);
}

void aster_run_tell(const struct aster_run *run, const char *event, const char *format, ...)
{
    va_list args;
    if (run->options->verbose || run->json) {
        va_start(args, format);
        print(run, event, format, args);
        va_end(args);
    }
}
