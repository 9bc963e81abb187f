#include "cli/demo/timeline_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/checked.h"

struct glyph {
    const char *unicode;
    const char *ascii;
};

static const struct glyph mark_glyphs[DEMO_MARKS] = {
    {"·", "."}, {"●", "*"}, {"↻", "+"}, {"○", "o"}, {"■", "#"},
    {"▶", ">"}, {"◆", "W"}, {"✗", "X"}, {"✗", "!"}, {"○", "o"},
};
static const struct glyph holding = {"┃", "|"};
static const struct glyph stopped = {"┆", ":"};
static const struct glyph waiting = {"╎", "'"};
static const struct glyph met = {"✓", "ok"};
static const struct glyph unmet = {"✗", "FAILED"};

#define BOLD "1"
#define DIM "2"
#define RED_BOLD "1;31"
#define GREEN "32"
#define YELLOW "33"
#define BLUE "34"

static bool is_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

void aster_demo_text_init(struct demo_text *text, FILE *out)
{
    const char *no_colour = getenv("NO_COLOR");
    *text = (struct demo_text){.out = out};
    text->colour = isatty(fileno(out)) && (no_colour == NULL || no_colour[0] == '\0');
    text->unicode = is_utf8_locale();
}

static const char *choose(const struct demo_text *text, const struct glyph *glyph)
{
    return text->unicode ? glyph->unicode : glyph->ascii;
}

static void paint(const struct demo_text *text, const char *code, const char *what)
{
    if (text->colour && code != NULL) {
        fprintf(text->out, "\033[%sm%s\033[0m", code, what);
    } else {
        fputs(what, text->out);
    }
}

static const char *epoch_code(int64_t epoch)
{
    return epoch == 0 ? NULL : epoch == 1 ? BLUE : GREEN;
}

static const char *mark_code(const struct demo_event *event)
{
    switch (event->mark) {
    case DEMO_MARK_REJECTED:
    case DEMO_MARK_CORRUPTED:
        return RED_BOLD;
    case DEMO_MARK_STOPPED:
    case DEMO_MARK_CONTINUED:
    case DEMO_MARK_DENIED:
        return YELLOW;
    case DEMO_MARK_GRANTED:
    case DEMO_MARK_WRITTEN:
    case DEMO_MARK_RELEASED:
    case DEMO_MARK_RENEWED:
        return epoch_code(event->epoch);
    case DEMO_MARK_NOTE:
    case DEMO_MARKS:
        break;
    }
    return NULL;
}

/* Bring the lanes to what they are after the event. */
static void advance(struct demo_text *text, const struct demo_event *event)
{
    struct demo_text_lane *lane = &text->lanes[event->lane];
    struct demo_text_lane *store = &text->lanes[DEMO_LANE_STORE];
    switch (event->mark) {
    case DEMO_MARK_GRANTED:
        *lane = (struct demo_text_lane){'h', event->epoch};
        break;
    case DEMO_MARK_DENIED:
        *lane = (struct demo_text_lane){'w', 0};
        break;
    case DEMO_MARK_STOPPED:
        lane->state = 'p';
        break;
    case DEMO_MARK_CONTINUED:
    case DEMO_MARK_REJECTED:
    case DEMO_MARK_RELEASED:
        *lane = (struct demo_text_lane){' ', 0};
        break;
    case DEMO_MARK_WRITTEN:
        *store = (struct demo_text_lane){'h', event->epoch};
        break;
    case DEMO_MARK_CORRUPTED:
        *store = (struct demo_text_lane){'s', 0};
        break;
    case DEMO_MARK_NOTE:
    case DEMO_MARK_RENEWED:
    case DEMO_MARKS:
        break;
    }
}

static void print_lane(const struct demo_text *text, const struct demo_event *event, enum demo_lane lane)
{
    const struct demo_text_lane *state = &text->lanes[lane];
    bool writes = event->mark == DEMO_MARK_WRITTEN || event->mark == DEMO_MARK_CORRUPTED;
    fputs("  ", text->out);
    if (event->lane == lane || (lane == DEMO_LANE_STORE && writes)) {
        paint(text, mark_code(event), choose(text, &mark_glyphs[event->mark]));
    } else if (state->state == 'h') {
        paint(text, epoch_code(state->epoch), choose(text, &holding));
    } else if (state->state == 's') {
        paint(text, RED_BOLD, choose(text, &holding));
    } else if (state->state == 'p') {
        paint(text, YELLOW, choose(text, &stopped));
    } else if (state->state == 'w') {
        paint(text, DIM, choose(text, &waiting));
    } else {
        fputc(' ', text->out);
    }
}

static void print_event(struct demo_text *text, const struct demo_act *act, const struct demo_event *event)
{
    advance(text, event);
    if (act->timed) {
        fprintf(text->out, "%6" PRId64 " ", (event->at_ns - act->start_ns) / ASTER_NS_PER_MS);
    } else {
        fputs("       ", text->out);
    }
    for (int lane = 0; lane < DEMO_LANES; lane++) {
        print_lane(text, event, (enum demo_lane)lane);
    }
    fprintf(text->out, "   %-8s  ", aster_demo_lane_name(act, event->lane));
    bool loud = event->mark == DEMO_MARK_REJECTED || event->mark == DEMO_MARK_CORRUPTED;
    paint(text, loud ? RED_BOLD : NULL, event->text);
    fputc('\n', text->out);
}

static void print_title(struct demo_text *text, const struct demo_act *act)
{
    fputs(text->act == NULL ? "" : "\n", text->out);
    paint(text, BOLD, act->title);
    fprintf(text->out, "\n%s\n\n", act->subtitle);
    fprintf(text->out, "%6s   A  B  %c   %s\n", act->timed ? "ms" : "", toupper((unsigned char)act->third_lane[0]),
            "who       what");
    text->act = act;
    text->printed = 0;
    for (int lane = 0; lane < DEMO_LANES; lane++) {
        text->lanes[lane] = (struct demo_text_lane){' ', 0};
    }
}

void aster_demo_text_show(struct demo_text *text, const struct demo_act *act)
{
    if (text->act != act) {
        print_title(text, act);
    }
    while (text->printed < act->settled) {
        print_event(text, act, &act->events[text->printed++]);
    }
    fflush(text->out);
}

void aster_demo_text_expectations(const struct demo_text *text, const char *checked,
                                  const struct demo_expectations *expectations)
{
    char title[160];
    snprintf(title, sizeof title, "What had to happen, checked against %s", checked);
    fputc('\n', text->out);
    paint(text, BOLD, title);
    fputs("\n\n", text->out);
    for (size_t i = 0; i < expectations->count; i++) {
        const struct demo_expectation *item = &expectations->items[i];
        fputs("  ", text->out);
        paint(text, item->met ? GREEN : RED_BOLD, choose(text, item->met ? &met : &unmet));
        fprintf(text->out, "  %s\n", item->text);
        if (!item->met) {
            fprintf(text->out, "       %s: %s\n", item->name, item->observed);
        }
    }
    size_t failed = aster_demo_expectations_failed(expectations);
    char verdict[120];
    if (failed == 0) {
        snprintf(verdict, sizeof verdict, "All %zu expectations were met.", expectations->count);
    } else {
        snprintf(verdict, sizeof verdict, "%zu of %zu expectations FAILED.", failed, expectations->count);
    }
    fputc('\n', text->out);
    paint(text, failed == 0 ? "1;32" : RED_BOLD, verdict);
    fputc('\n', text->out);
}
