/* One act as a chart: a lane for each actor, lease bars in the colour of their epoch, numbered marks. */
#ifndef DEMO_SVG_CHART_H
#define DEMO_SVG_CHART_H

#include <stdio.h>

#include "cli/demo/timeline.h"

/* Height that the chart of a timed act takes. */
double aster_svg_chart_height(void);

/* Draw it with its upper edge at `top`. */
void aster_svg_chart(FILE *out, const struct demo_act *act, double top);

/* The colour of an event's mark. */
const char *aster_svg_mark_colour(const struct demo_event *event);

/* A numbered badge, as in the chart and in the list below it. */
void aster_svg_badge(FILE *out, double x, double y, const struct demo_event *event, int number);

#endif
