#include "cli/demo/svg_chart.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "cli/demo/svg.h"
#include "cli/demo/svg_palette.h"

#define PLOT_LEFT 134.0
#define PLOT_RIGHT (SVG_PAGE_WIDTH - SVG_MARGIN - 20)
#define OUTCOME_WIDTH 250.0 /* right of the last event: room for its outcome */
#define LANE_HEIGHT 54.0
#define BAR_HEIGHT 28.0
#define BADGE_RADIUS 10.0
#define BADGE_GAP 23.0
#define AXIS_HEIGHT 28.0
#define CHARACTER_WIDTH 6.6

struct chart {
    FILE *out;
    const struct demo_act *act;
    double top;
    int64_t length_ns;
    double badge_x[DEMO_EVENTS_MAX];
};

double aster_svg_chart_height(void)
{
    return LANE_HEIGHT * DEMO_LANES + AXIS_HEIGHT;
}

static double x_of(const struct chart *chart, int64_t at_ns)
{
    double share = (double)(at_ns - chart->act->start_ns) / (double)chart->length_ns;
    return PLOT_LEFT + share * (PLOT_RIGHT - OUTCOME_WIDTH - PLOT_LEFT);
}

static double lane_middle(const struct chart *chart, enum demo_lane lane)
{
    return chart->top + LANE_HEIGHT * ((double)lane + 0.5);
}

static const char *epoch_colour(int64_t epoch)
{
    return epoch <= 1 ? SVG_EPOCH_1 : SVG_EPOCH_2;
}

const char *aster_svg_mark_colour(const struct demo_event *event)
{
    switch (event->mark) {
    case DEMO_MARK_REJECTED:
    case DEMO_MARK_CORRUPTED:
        return SVG_RED;
    case DEMO_MARK_STOPPED:
    case DEMO_MARK_CONTINUED:
    case DEMO_MARK_DENIED:
        return SVG_AMBER;
    case DEMO_MARK_GRANTED:
    case DEMO_MARK_RENEWED:
    case DEMO_MARK_WRITTEN:
    case DEMO_MARK_RELEASED:
        return epoch_colour(event->epoch);
    case DEMO_MARK_NOTE:
    case DEMO_MARKS:
        break;
    }
    return SVG_GREY;
}

void aster_svg_badge(FILE *out, double x, double y, const struct demo_event *event, int number)
{
    const struct svg_font font = {11, "700", "middle", SVG_WHITE};
    char text[12];
    snprintf(text, sizeof text, "%d", number);
    aster_svg_circle(out, x, y, BADGE_RADIUS, aster_svg_mark_colour(event), SVG_WHITE);
    aster_svg_text(out, x, y + 4, &font, text);
}

static void draw_grid(const struct chart *chart)
{
    const struct svg_font name = {13, "600", "end", SVG_INK};
    const struct svg_font tick = {11, "400", "middle", SVG_GREY};
    for (int lane = 0; lane < DEMO_LANES; lane++) {
        double top = chart->top + LANE_HEIGHT * lane;
        aster_svg_box(chart->out, PLOT_LEFT - 6, top + 4, PLOT_RIGHT - PLOT_LEFT + 12, LANE_HEIGHT - 8, 6, SVG_LANE,
                      "none");
        aster_svg_text(chart->out, PLOT_LEFT - 18, lane_middle(chart, (enum demo_lane)lane) + 4.5, &name,
                       aster_demo_lane_name(chart->act, (enum demo_lane)lane));
    }
    double bottom = chart->top + LANE_HEIGHT * DEMO_LANES;
    int64_t tick_ms = chart->length_ns > aster_ms_to_ns(4000) ? 1000 : 500;
    for (int64_t ms = 0; aster_ms_to_ns(ms) <= chart->length_ns; ms += tick_ms) {
        double x = x_of(chart, chart->act->start_ns + aster_ms_to_ns(ms));
        char label[32];
        snprintf(label, sizeof label, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
        aster_svg_line(chart->out, x, chart->top + 4, x, bottom, SVG_HAIRLINE, 1, "none");
        aster_svg_text(chart->out, x, bottom + 17, &tick, label);
    }
}

/* The text, or what comes before its " by ", or nothing: whatever fits. */
static void draw_label(FILE *out, double x, double y, double width, const char *text)
{
    const struct svg_font font = {11.5, "600", "start", SVG_WHITE};
    const char *by = strstr(text, " by ");
    size_t whole = strlen(text);
    size_t lengths[] = {whole, by != NULL ? (size_t)(by - text) : whole};
    for (size_t i = 0; i < 2; i++) {
        if (CHARACTER_WIDTH * (double)lengths[i] + 6 < width) {
            char label[64];
            snprintf(label, sizeof label, "%.*s", (int)lengths[i], text);
            aster_svg_text(out, x, y, &font, label);
            return;
        }
    }
}

static void draw_span(const struct chart *chart, const struct demo_span *span)
{
    bool content = span->kind == DEMO_SPAN_CONTENT || span->kind == DEMO_SPAN_STALE;
    double from = x_of(chart, span->from_ns);
    double to = span->to_ns != 0 ? x_of(chart, span->to_ns)
                : content        ? PLOT_RIGHT
                                 : x_of(chart, chart->act->start_ns + chart->length_ns);
    double top = lane_middle(chart, span->lane) - BAR_HEIGHT / 2;
    double width = to - from > 3 ? to - from : 3;
    if (span->kind == DEMO_SPAN_PAUSED) {
        aster_svg_box(chart->out, from, top + 5, width, BAR_HEIGHT - 10, 3, SVG_STOPPED, "#aab1bd");
    } else if (span->kind == DEMO_SPAN_WAITING) {
        aster_svg_line(chart->out, from, top + BAR_HEIGHT / 2, to, top + BAR_HEIGHT / 2, SVG_GREY, 2, "2 6");
        return;
    } else {
        const char *fill = span->kind == DEMO_SPAN_STALE ? SVG_RED : epoch_colour(span->epoch);
        aster_svg_box(chart->out, from, top, width, BAR_HEIGHT, 5, fill, "none");
    }
    if (span->kind != DEMO_SPAN_PAUSED) {
        double indent = span->kind == DEMO_SPAN_LEASE ? BADGE_RADIUS + 8 : 10;
        draw_label(chart->out, from + indent, top + BAR_HEIGHT / 2 + 4, width - indent, span->text);
    }
}

/* Marks of one lane that are close in time are moved apart; the list below the chart has their times. */
static void place_badges(struct chart *chart)
{
    double next_free[DEMO_LANES] = {0, 0, 0};
    for (size_t i = 0; i < chart->act->event_count; i++) {
        const struct demo_event *event = &chart->act->events[i];
        if (event->key) {
            double x = x_of(chart, event->at_ns);
            double *free_x = &next_free[event->lane];
            chart->badge_x[i] = x > *free_x ? x : *free_x;
            *free_x = chart->badge_x[i] + BADGE_GAP;
        }
    }
}

static void draw_arrow(const struct chart *chart, const struct demo_event *event, double x)
{
    double from = lane_middle(chart, event->lane) + BADGE_RADIUS;
    double to = lane_middle(chart, DEMO_LANE_STORE) - BAR_HEIGHT / 2 - 2;
    bool refused = event->mark == DEMO_MARK_REJECTED;
    const char *colour = aster_svg_mark_colour(event);
    aster_svg_line(chart->out, x, from, x, to - (refused ? 7 : 6), colour, 2.2, refused ? "4 4" : "none");
    if (refused) {
        aster_svg_line(chart->out, x - 7, to - 14, x + 7, to, colour, 3.4, "none");
        aster_svg_line(chart->out, x - 7, to, x + 7, to - 14, colour, 3.4, "none");
    } else {
        char points[96];
        snprintf(points, sizeof points, "%.1f,%.1f %.1f,%.1f %.1f,%.1f", x - 6, to - 9, x + 6, to - 9, x, to + 1);
        aster_svg_polygon(chart->out, points, colour);
    }
}

static void draw_outcome(const struct chart *chart, const struct demo_event *event, double x)
{
    const struct svg_font font = {13, "700", "start", SVG_RED};
    const char *text = event->mark == DEMO_MARK_REJECTED ? "late write REJECTED" : "late write ACCEPTED";
    double width = 20 + 7.9 * (double)strlen(text);
    double middle = lane_middle(chart, event->lane);
    aster_svg_box(chart->out, x + 16, middle - 13, width, 26, 13, SVG_RED_PALE, SVG_RED);
    aster_svg_text(chart->out, x + 26, middle + 4.5, &font, text);
}

static void draw_events(const struct chart *chart)
{
    int number = 0;
    for (size_t i = 0; i < chart->act->event_count; i++) {
        const struct demo_event *event = &chart->act->events[i];
        double middle = lane_middle(chart, event->lane);
        double x = chart->badge_x[i];
        bool late = event->mark == DEMO_MARK_REJECTED || event->mark == DEMO_MARK_CORRUPTED;
        if (event->mark == DEMO_MARK_RENEWED) {
            double at = x_of(chart, event->at_ns);
            aster_svg_line(chart->out, at, middle - BAR_HEIGHT / 2, at, middle + BAR_HEIGHT / 2, SVG_WHITE, 2, "none");
        }
        if (!event->key) {
            continue;
        }
        if (late || event->mark == DEMO_MARK_WRITTEN) {
            draw_arrow(chart, event, x);
        }
        if (late) {
            draw_outcome(chart, event, x);
        }
        aster_svg_badge(chart->out, x, middle, event, ++number);
    }
}

void aster_svg_chart(FILE *out, const struct demo_act *act, double top)
{
    struct chart chart = {.out = out, .act = act, .top = top};
    int64_t length_ns = aster_demo_act_end_ns(act) - act->start_ns;
    chart.length_ns = length_ns > 0 ? length_ns : 1;
    draw_grid(&chart);
    place_badges(&chart);
    for (int kind = 0; kind < DEMO_SPAN_KINDS; kind++) {
        for (size_t i = 0; i < act->span_count; i++) {
            if ((int)act->spans[i].kind == kind) {
                draw_span(&chart, &act->spans[i]);
            }
        }
    }
    draw_events(&chart);
}
