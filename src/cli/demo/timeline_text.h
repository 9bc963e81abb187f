/* The timeline on a terminal or in a log: one line per event, a lane for each actor that shows who owns what. */
#ifndef DEMO_TIMELINE_TEXT_H
#define DEMO_TIMELINE_TEXT_H

#include <stdio.h>

#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"

struct demo_text_lane {
    char state; /* ' ' nothing, 'h' holds, 's' holds stale data, 'p' stopped, 'w' waits */
    int64_t epoch;
};

struct demo_text {
    FILE *out;
    bool colour;
    bool unicode;
    const struct demo_act *act; /* whose title has been printed */
    size_t printed;
    struct demo_text_lane lanes[DEMO_LANES];
};

/* Colours only when `out` is a terminal and NO_COLOR is not set; line-drawing characters only in a UTF-8 locale. */
void aster_demo_text_init(struct demo_text *text, FILE *out);

/* Print what has settled since the last call, the act's title first. */
void aster_demo_text_show(struct demo_text *text, const struct demo_act *act);

/* `checked`: what they were checked against. */
void aster_demo_text_expectations(const struct demo_text *text, const char *checked,
                                  const struct demo_expectations *expectations);

#endif
