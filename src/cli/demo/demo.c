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

#define SETTLE_MS 80 /* a worker's report is on the way for less than this */

struct demo {
    struct demo_stage stage;
    const struct demo_story *story;
    struct demo_act acts[DEMO_PARTS_MAX];
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

aster_status aster_demo_keep_published(const struct demo_stage *stage, const struct demo_stored *stored,
                                       struct aster_error *error)
{
    char path[DEMO_PATH_MAX];
    aster_status status = aster_demo_stage_path(stage, "invoice-in-store.pdf", path, error);
    FILE *file = status == ASTER_OK && stored->found ? fopen(path, "wb") : NULL;
    if (file != NULL) {
        size_t written = fwrite(stored->pdf, 1, stored->pdf_size, file);
        if (fclose(file) != 0 || written != stored->pdf_size) {
            status = aster_error_set(error, ASTER_ERR_IO, "cannot write invoice-in-store.pdf");
        }
    }
    return status;
}

const struct demo_story aster_demo_store_story = {
    .parts = {{aster_demo_fenced_run, "fenced.played", "act 1 was played to its end"},
              {aster_demo_memory_check, "memory.played", "act 2 was played to its end"},
              {aster_demo_control_run, "control.played", "act 3 was played to its end"}},
    .part_count = 3,
    .caption = {"A worker stops, another takes over, the first comes back and writes",
                "Real processes, stopped by SIGSTOP, on one SQLite file. Every time below was measured.",
                "process stopped", "the stores, the decisions and the processes"},
    .kept_label = "stores",
    .kept = "{invoices,control}.db"};

static void play(struct demo *demo, size_t index, struct aster_error *error)
{
    const struct demo_part *part = &demo->story->parts[index];
    struct demo_act *act = &demo->acts[index];
    aster_status status = part->play(&demo->stage, act, error);
    aster_demo_act_settle(act, INT64_MAX);
    show(act, demo);
    bool complete = status == ASTER_OK && act->dropped == 0;
    aster_demo_expect(&demo->expectations, complete, part->name, part->text, "%s",
                      status != ASTER_OK ? error->message
                      : complete         ? "yes"
                                         : "too many events to show");
}

static int print_json(const struct demo *demo, FILE *out)
{
    json_t *json = aster_demo_json(demo->acts, demo->story->part_count, &demo->expectations);
    bool failed = json == NULL || json_object_set_new(json, "svg", json_string(demo->svg)) != 0 ||
                  json_object_set_new(json, "directory", json_string(demo->stage.directory)) != 0 ||
                  json_dumpf(json, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF;
    json_decref(json);
    return failed ? 1 : 0;
}

static int report(struct demo *demo, FILE *out)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_demo_svg_write(demo->svg, &demo->story->caption, demo->acts, demo->story->part_count,
                                               &demo->expectations, &error);
    int failed = aster_demo_expectations_failed(&demo->expectations) > 0;
    if (demo->json) {
        failed |= print_json(demo, out);
    } else {
        aster_demo_text_expectations(&demo->text, demo->story->caption.checked, &demo->expectations);
        fprintf(out, "\n  timeline  %s\n  invoice   %s/invoice-in-store.pdf\n  %-8s  %s/%s\n",
                status == ASTER_OK ? demo->svg : "(none)", demo->stage.directory, demo->story->kept_label,
                demo->stage.directory, demo->story->kept);
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
    demo->story = options->grantor ? &aster_demo_grantor_story : &aster_demo_store_story;
    demo->stage.sabotaged = options->sabotaged;
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

/* All acts, until a signal comes. Errors: of opening the story. */
static aster_status perform(struct demo *demo, struct aster_error *error)
{
    const struct demo_story *story = demo->story;
    struct aster_error part_error = ASTER_ERROR_INIT;
    aster_status status = story->open != NULL ? story->open(&demo->stage, error) : ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < story->part_count && aster_demo_signal() == 0; i++) {
        play(demo, i, &part_error);
    }
    if (story->close != NULL) {
        story->close(&demo->stage);
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
    aster_status status = perform(demo, &error);
    if (aster_demo_signal() != 0) {
        fputs("\naster demo: interrupted; its processes are gone\n", stderr);
        code = ASTER_EXIT_SIGNAL + aster_demo_signal();
    } else if (status != ASTER_OK) {
        fprintf(stderr, "aster demo: %s\n", error.message);
        code = aster_exit_of(status);
    } else {
        code = report(demo, out);
    }
    if (options->directory == NULL && (aster_demo_signal() != 0 || status != ASTER_OK)) {
        aster_demo_directory_remove(demo->stage.directory);
    }
    aster_demo_signals_restore();
    free(demo);
    return code;
}
