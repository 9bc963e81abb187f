#include "cli/demo/timeline_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/svg.h"
#include "cli/demo/svg_chart.h"
#include "cli/demo/svg_palette.h"

#define HEADER_HEIGHT 116.0
#define CARD_HEAD 66.0
#define CARD_PADDING 16.0
#define CARD_GAP 18.0
#define ROW_HEIGHT 24.0
#define FOOTER_HEIGHT 70.0
#define INSIDE (SVG_MARGIN + 20)

static size_t listed(const struct demo_act *act)
{
    size_t count = 0;
    for (size_t i = 0; i < act->event_count; i++) {
        count += act->events[i].key;
    }
    return count;
}

/* Charts have their list in two columns; a list of checks has one. */
static size_t list_rows(const struct demo_act *act)
{
    return act->timed ? (listed(act) + 1) / 2 : listed(act);
}

static double card_height(const struct demo_act *act)
{
    double chart = act->timed ? aster_svg_chart_height() + 14 : 0;
    return CARD_HEAD + chart + ROW_HEIGHT * (double)list_rows(act) + CARD_PADDING;
}

static void legend_swatch(FILE *out, double x, double y, const char *fill, const char *text)
{
    const struct svg_font font = {12, "400", "start", SVG_INK};
    aster_svg_box(out, x, y - 10, 26, 13, 3, fill, "none");
    aster_svg_text(out, x + 33, y + 1, &font, text);
}

static void draw_header(FILE *out, const struct demo_caption *caption)
{
    const struct svg_font title = {23, "700", "start", SVG_INK};
    const struct svg_font plain = {13.5, "400", "start", SVG_GREY};
    const struct svg_font legend = {12, "400", "start", SVG_INK};
    aster_svg_text(out, SVG_MARGIN, 40, &title, caption->title);
    aster_svg_text(out, SVG_MARGIN, 62, &plain, caption->subtitle);
    double y = 94;
    legend_swatch(out, SVG_MARGIN, y, SVG_EPOCH_1, "first lease");
    legend_swatch(out, SVG_MARGIN + 124, y, SVG_EPOCH_2, "second lease");
    aster_svg_line(out, SVG_MARGIN + 271, y - 10, SVG_MARGIN + 271, y + 3, SVG_EPOCH_1, 2, "none");
    aster_svg_text(out, SVG_MARGIN + 280, y + 1, &legend, "renewal");
    legend_swatch(out, SVG_MARGIN + 350, y, SVG_STOPPED, caption->paused);
    aster_svg_line(out, SVG_MARGIN + 496, y - 3.5, SVG_MARGIN + 524, y - 3.5, SVG_GREY, 2, "2 6");
    aster_svg_text(out, SVG_MARGIN + 530, y + 1, &legend, "waiting");
    aster_svg_polygon(out, "623,85 635,85 629,96", SVG_EPOCH_2);
    aster_svg_text(out, 641, y + 1, &legend, "write in the store");
    aster_svg_line(out, 769, y - 9, 780, y + 2, SVG_RED, 3, "none");
    aster_svg_line(out, 769, y + 2, 780, y - 9, SVG_RED, 3, "none");
    aster_svg_text(out, 787, y + 1, &legend, "late write rejected");
    legend_swatch(out, 922, y, SVG_RED, "stale data in the store");
}

static void draw_list(FILE *out, const struct demo_act *act, double top)
{
    const struct svg_font time = {12, "600", "end", SVG_GREY};
    const struct svg_font who = {12, "600", "start", SVG_INK};
    struct svg_font what = {12, "400", "start", SVG_INK};
    size_t rows = list_rows(act);
    size_t index = 0;
    for (size_t i = 0; i < act->event_count; i++) {
        const struct demo_event *event = &act->events[i];
        if (!event->key) {
            continue;
        }
        double x = INSIDE + (index >= rows ? (SVG_PAGE_WIDTH - 2 * INSIDE) / 2 + 8 : 0);
        double y = top + ROW_HEIGHT * ((double)(index % rows) + 0.5);
        bool loud = event->mark == DEMO_MARK_REJECTED || event->mark == DEMO_MARK_CORRUPTED;
        what.fill = loud ? SVG_RED : SVG_INK;
        what.weight = loud ? "600" : "400";
        aster_svg_badge(out, x + 10, y, event, (int)++index);
        if (act->timed) {
            char text[32];
            snprintf(text, sizeof text, "%" PRId64 " ms", (event->at_ns - act->start_ns) / ASTER_NS_PER_MS);
            aster_svg_text(out, x + 84, y + 4, &time, text);
        }
        double who_x = act->timed ? x + 96 : x + 32;
        aster_svg_text(out, who_x, y + 4, &who, aster_demo_lane_name(act, event->lane));
        aster_svg_text(out, who_x + 66, y + 4, &what, event->text);
    }
}

static void draw_card(FILE *out, const struct demo_act *act, double top)
{
    const struct svg_font title = {16, "700", "start", SVG_INK};
    const struct svg_font subtitle = {12.5, "400", "start", SVG_GREY};
    aster_svg_box(out, SVG_MARGIN, top, SVG_PAGE_WIDTH - 2 * SVG_MARGIN, card_height(act), 10, SVG_WHITE, SVG_HAIRLINE);
    aster_svg_text(out, INSIDE, top + 29, &title, act->title);
    aster_svg_text(out, INSIDE, top + 49, &subtitle, act->subtitle);
    double list_top = top + CARD_HEAD;
    if (act->timed) {
        aster_svg_chart(out, act, list_top);
        list_top += aster_svg_chart_height() + 14;
    }
    draw_list(out, act, list_top);
}

static void draw_footer(FILE *out, double top, const char *checked, const struct demo_expectations *expectations)
{
    const struct svg_font font = {15, "700", "start", SVG_WHITE};
    size_t failed = aster_demo_expectations_failed(expectations);
    char text[160];
    if (failed == 0) {
        snprintf(text, sizeof text, "All %zu expectations were met, checked against %s.", expectations->count, checked);
    } else {
        snprintf(text, sizeof text, "%zu of %zu expectations FAILED.", failed, expectations->count);
    }
    aster_svg_box(out, SVG_MARGIN, top, SVG_PAGE_WIDTH - 2 * SVG_MARGIN, 44, 10, failed == 0 ? SVG_EPOCH_2 : SVG_RED,
                  "none");
    aster_svg_text(out, INSIDE, top + 27.5, &font, text);
}

aster_status aster_demo_svg_write(const char *path, const struct demo_caption *caption, const struct demo_act *acts,
                                  size_t act_count, const struct demo_expectations *expectations,
                                  struct aster_error *error)
{
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create the picture");
    }
    double height = HEADER_HEIGHT + FOOTER_HEIGHT;
    for (size_t i = 0; i < act_count; i++) {
        height += card_height(&acts[i]) + CARD_GAP;
    }
    aster_svg_begin(out, SVG_PAGE_WIDTH, height);
    aster_svg_box(out, 0, 0, SVG_PAGE_WIDTH, height, 0, SVG_PAGE, "none");
    draw_header(out, caption);
    double top = HEADER_HEIGHT;
    for (size_t i = 0; i < act_count; i++) {
        draw_card(out, &acts[i], top);
        top += card_height(&acts[i]) + CARD_GAP;
    }
    draw_footer(out, top, caption->checked, expectations);
    aster_svg_end(out);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write the picture");
    }
    return ASTER_OK;
}
