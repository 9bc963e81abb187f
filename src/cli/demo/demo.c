#include "cli/demo/demo.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/acts.h"
#include "cli/demo/output_directory.h"
#include "cli/demo/signals.h"
#include "cli/demo/timeline_json.h"
#include "cli/demo/timeline_svg.h"
#include "cli/demo/timeline_text.h"
#include "cli/exit.h"

#define ACTS 3
#define SETTLE_MS 80 /* a worker's report is on the way for less than this */

struct demo {
    struct demo_stage stage;
    struct demo_act acts[ACTS];
    struct demo_expectations expectations;
    struct demo_text text;
    bool json;
    FILE *progress; /* or NULL */
    const struct demo_act *announced;
    char svg[DEMO_PATH_MAX];
};

aster_status aster_demo_stage_path(const struct demo_stage *stage, const char *name, char path[DEMO_PATH_MAX],
                                   struct aster_error *error)
{
    int length = snprintf(path, DEMO_PATH_MAX, "%s/%s", stage->directory, name);
    if (length < 0 || length >= DEMO_PATH_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the output directory's path is too long; use a shorter --out");
    }
    return ASTER_OK;
}

static void show(struct demo_act *act, void *user)
{
    struct demo *demo = user;
    aster_demo_act_settle(act, aster_demo_now_ns() - aster_ms_to_ns(SETTLE_MS));
    if (!demo->json) {
        aster_demo_text_show(&demo->text, act);
    } else if (demo->progress != NULL && demo->announced != act) {
        fprintf(demo->progress, "%s\n", act->title);
        demo->announced = act;
    }
}

typedef aster_status (*play_act)(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);

static void play(struct demo *demo, size_t index, struct aster_error *error)
{
    static const play_act plays[ACTS] = {aster_demo_fenced_run, aster_demo_memory_check, aster_demo_control_run};
    static const char *const names[ACTS] = {"fenced.played", "memory.played", "control.played"};
    static const char *const texts[ACTS] = {"act 1 was played to its end", "act 2 was played to its end",
                                            "act 3 was played to its end"};
    struct demo_act *act = &demo->acts[index];
    aster_status status = plays[index](&demo->stage, act, error);
    aster_demo_act_settle(act, INT64_MAX);
    show(act, demo);
    bool complete = status == ASTER_OK && act->dropped == 0;
    aster_demo_expect(&demo->expectations, complete, names[index], texts[index], "%s",
                      status != ASTER_OK ? error->message
                      : complete         ? "yes"
                                         : "too many events to show");
}

static int print_json(const struct demo *demo, FILE *out)
{
    json_t *json = aster_demo_json(demo->acts, ACTS, &demo->expectations);
    bool failed = json == NULL || json_object_set_new(json, "svg", json_string(demo->svg)) != 0 ||
                  json_object_set_new(json, "directory", json_string(demo->stage.directory)) != 0 ||
                  json_dumpf(json, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
    json_decref(json);
    return failed ? 1 : 0;
}

static int report(struct demo *demo, FILE *out)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_demo_svg_write(demo->svg, demo->acts, ACTS, &demo->expectations, &error);
    int failed = aster_demo_expectations_failed(&demo->expectations) > 0;
    if (demo->json) {
        failed |= print_json(demo, out);
    } else {
        aster_demo_text_expectations(&demo->text, &demo->expectations);
        fprintf(out, "\n  timeline  %s\n  invoice   %s/invoice-in-store.pdf\n  stores    %s/{invoices,control}.db\n",
                status == ASTER_OK ? demo->svg : "(none)", demo->stage.directory, demo->stage.directory);
    }
    if (status != ASTER_OK) {
        fprintf(stderr, "aster demo: %s\n", error.message);
        failed = 1;
    }
    if (fflush(out) != 0) {
        failed = 1;
    }
    return failed;
}

static aster_status prepare(struct demo *demo, const struct demo_options *options, FILE *out, struct aster_error *error)
{
    demo->stage.without_fence = options->without_fence;
    demo->stage.expectations = &demo->expectations;
    demo->stage.show = show;
    demo->stage.show_user = demo;
    demo->json = options->json;
    demo->progress = options->json && isatty(STDERR_FILENO) ? stderr : NULL;
    aster_demo_text_init(&demo->text, out);
    aster_status status = aster_demo_directory_open(options->directory, demo->stage.directory, error);
    if (status == ASTER_OK && options->svg == NULL) {
        status = aster_demo_stage_path(&demo->stage, "demo-timeline.svg", demo->svg, error);
    } else if (status == ASTER_OK) {
        snprintf(demo->svg, sizeof demo->svg, "%s", options->svg);
    }
    return status;
}

int aster_demo_run(const struct demo_options *options, FILE *out)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct demo *demo = calloc(1, sizeof *demo);
    if (demo == NULL) {
        fputs("aster demo: no memory\n", stderr);
        return ASTER_EXIT_INTERNAL;
    }
    if (prepare(demo, options, out, &error) != ASTER_OK) {
        fprintf(stderr, "aster demo: %s\n", error.message);
        free(demo);
        return ASTER_EXIT_IO;
    }
    int code;
    aster_demo_signals_take();
    for (size_t i = 0; i < ACTS && aster_demo_signal() == 0; i++) {
        play(demo, i, &error);
    }
    if (aster_demo_signal() != 0) {
        if (options->directory == NULL) {
            aster_demo_directory_remove(demo->stage.directory);
        }
        fputs("\naster demo: interrupted; its processes are gone\n", stderr);
        code = ASTER_EXIT_SIGNAL + aster_demo_signal();
    } else {
        code = report(demo, out);
    }
    aster_demo_signals_restore();
    free(demo);
    return code;
}
