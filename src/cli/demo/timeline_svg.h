/* The whole demo as one picture. */
#ifndef DEMO_TIMELINE_SVG_H
#define DEMO_TIMELINE_SVG_H

#include "aster/status.h"
#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"

/* What the picture says about the whole. */
struct demo_caption {
    const char *title;
    const char *subtitle;
    const char *paused;  /* for the legend: "process stopped" */
    const char *checked; /* what the expectations were checked against */
};

/* Write the picture to `path`, replacing it. Events must be settled. Errors: ASTER_ERR_IO. */
aster_status aster_demo_svg_write(const char *path, const struct demo_caption *caption, const struct demo_act *acts,
                                  size_t act_count, const struct demo_expectations *expectations,
                                  struct aster_error *error);

#endif
