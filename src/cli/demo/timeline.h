/* What happened, when and to whom: the model behind the text, the SVG and the JSON. Filled only from reports of the
 * worker processes and from what the director itself did or read. Not thread-safe: the director's. */
#ifndef DEMO_TIMELINE_H
#define DEMO_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The third lane is what the two workers meet at; the act names it. */
enum demo_lane { DEMO_LANE_A, DEMO_LANE_B, DEMO_LANE_STORE, DEMO_LANES };

enum demo_mark {
    DEMO_MARK_NOTE,
    DEMO_MARK_GRANTED,
    DEMO_MARK_RENEWED,
    DEMO_MARK_DENIED,
    DEMO_MARK_STOPPED,
    DEMO_MARK_CONTINUED,
    DEMO_MARK_WRITTEN,
    DEMO_MARK_REJECTED,  /* a stale write was refused */
    DEMO_MARK_CORRUPTED, /* a stale write was accepted */
    DEMO_MARK_RELEASED,
    DEMO_MARKS
};

enum demo_span_kind {
    DEMO_SPAN_LEASE,   /* the store honours this lane's ownership */
    DEMO_SPAN_PAUSED,  /* the process is stopped, or its network is cut */
    DEMO_SPAN_WAITING, /* queued for the lease */
    DEMO_SPAN_CONTENT, /* store lane: what the protected row holds */
    DEMO_SPAN_STALE,   /* store lane: stale content over newer content */
    DEMO_SPAN_KINDS
};

#define DEMO_TEXT_MAX 160
#define DEMO_EVENTS_MAX 128
#define DEMO_SPANS_MAX 16

struct demo_event {
    int64_t at_ns; /* CLOCK_BOOTTIME */
    enum demo_lane lane;
    enum demo_mark mark;
    int64_t epoch; /* 0 = none */
    bool key;      /* numbered in the picture */
    char text[DEMO_TEXT_MAX];
};

struct demo_span {
    enum demo_lane lane;
    enum demo_span_kind kind;
    int64_t epoch;
    int64_t from_ns;
    int64_t to_ns; /* 0 = still open */
    char text[64];
};

struct demo_act {
    const char *title;
    const char *subtitle;
    const char *third_lane; /* "store" unless changed after the start */
    bool timed;             /* worth a chart; otherwise a list of checks */
    int64_t start_ns;
    struct demo_event events[DEMO_EVENTS_MAX];
    size_t event_count;
    size_t settled; /* events before it are in their final order and have been shown */
    struct demo_span spans[DEMO_SPANS_MAX];
    size_t span_count;
    size_t dropped; /* events beyond the capacity */
};

/* Start an act now. The texts are borrowed. */
void aster_demo_act_init(struct demo_act *act, const char *title, const char *subtitle, bool timed);

/* Add an event; the text is cut at DEMO_TEXT_MAX. The returned event may be adjusted before the next call. */
struct demo_event *aster_demo_act_add(struct demo_act *act, int64_t at_ns, enum demo_lane lane, enum demo_mark mark,
                                      int64_t epoch, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Open a span, or close the open one of that lane and kind (no effect when there is none). */
void aster_demo_act_span_open(struct demo_act *act, enum demo_lane lane, enum demo_span_kind kind, int64_t epoch,
                              int64_t at_ns, const char *text);
void aster_demo_act_span_close(struct demo_act *act, enum demo_lane lane, enum demo_span_kind kind, int64_t at_ns);

/* Put the events that are older than `before_ns` and not yet settled in order; returns how many are settled now.
 * Processes stamp their own events, so a report may arrive shortly after one that happened later. */
size_t aster_demo_act_settle(struct demo_act *act, int64_t before_ns);

/* Latest instant of the act. */
int64_t aster_demo_act_end_ns(const struct demo_act *act);

const char *aster_demo_lane_name(const struct demo_act *act, enum demo_lane lane); /* "worker A" */
const char *aster_demo_mark_name(enum demo_mark mark);                             /* "granted" */
const char *aster_demo_span_name(enum demo_span_kind kind);

int64_t aster_demo_now_ns(void);

#endif
