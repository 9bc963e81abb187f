#include "cli/demo/timeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "aster/sys/clock.h"

int64_t aster_demo_now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

void aster_demo_act_init(struct demo_act *act, const char *title, const char *subtitle, bool timed)
{
    memset(act, 0, sizeof *act);
    act->title = title;
    act->subtitle = subtitle;
    act->third_lane = "store";
    act->timed = timed;
    act->start_ns = aster_demo_now_ns();
}

struct demo_event *aster_demo_act_add(struct demo_act *act, int64_t at_ns, enum demo_lane lane, enum demo_mark mark,
                                      int64_t epoch, const char *format, ...)
{
    if (act->event_count == DEMO_EVENTS_MAX) {
        act->dropped++;
        act->event_count--;
    }
    struct demo_event *event = &act->events[act->event_count++];
    *event = (struct demo_event){.at_ns = at_ns, .lane = lane, .mark = mark, .epoch = epoch};
    event->key = mark != DEMO_MARK_NOTE && mark != DEMO_MARK_RENEWED && mark != DEMO_MARK_RELEASED;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(event->text, sizeof event->text, format, arguments);
    va_end(arguments);
    return event;
}

void aster_demo_act_span_open(struct demo_act *act, enum demo_lane lane, enum demo_span_kind kind, int64_t epoch,
                              int64_t at_ns, const char *text)
{
    if (act->span_count == DEMO_SPANS_MAX) {
        return;
    }
    struct demo_span *span = &act->spans[act->span_count++];
    *span = (struct demo_span){.lane = lane, .kind = kind, .epoch = epoch, .from_ns = at_ns};
    snprintf(span->text, sizeof span->text, "%s", text);
}

void aster_demo_act_span_close(struct demo_act *act, enum demo_lane lane, enum demo_span_kind kind, int64_t at_ns)
{
    for (size_t i = 0; i < act->span_count; i++) {
        struct demo_span *span = &act->spans[i];
        if (span->lane == lane && span->kind == kind && span->to_ns == 0) {
            span->to_ns = at_ns;
        }
    }
}

size_t aster_demo_act_settle(struct demo_act *act, int64_t before_ns)
{
    struct demo_event *events = act->events;
    /* Insertion sort: the tail is a handful of events and stability keeps each process's own order. */
    for (size_t i = act->settled + 1; i < act->event_count; i++) {
        struct demo_event moved = events[i];
        size_t j = i;
        for (; j > act->settled && events[j - 1].at_ns > moved.at_ns; j--) {
            events[j] = events[j - 1];
        }
        events[j] = moved;
    }
    while (act->settled < act->event_count && events[act->settled].at_ns < before_ns) {
        act->settled++;
    }
    return act->settled;
}

int64_t aster_demo_act_end_ns(const struct demo_act *act)
{
    int64_t end_ns = act->start_ns;
    for (size_t i = 0; i < act->event_count; i++) {
        end_ns = act->events[i].at_ns > end_ns ? act->events[i].at_ns : end_ns;
    }
    return end_ns;
}

const char *aster_demo_lane_name(const struct demo_act *act, enum demo_lane lane)
{
    const char *const names[DEMO_LANES] = {"worker A", "worker B", act->third_lane};
    return lane < DEMO_LANES ? names[lane] : "unknown";
}

const char *aster_demo_mark_name(enum demo_mark mark)
{
    static const char *const names[DEMO_MARKS] = {"note",      "granted", "renewed",  "denied",    "stopped",
                                                  "continued", "written", "rejected", "corrupted", "released"};
    return mark < DEMO_MARKS ? names[mark] : "unknown";
}

const char *aster_demo_span_name(enum demo_span_kind kind)
{
    static const char *const names[DEMO_SPAN_KINDS] = {"lease", "paused", "waiting", "content", "stale-content"};
    return kind < DEMO_SPAN_KINDS ? names[kind] : "unknown";
}
