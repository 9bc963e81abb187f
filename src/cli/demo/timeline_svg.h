/* The whole demo as one picture. */
#ifndef DEMO_TIMELINE_SVG_H
#define DEMO_TIMELINE_SVG_H

#include "aster/status.h"
#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"

/* Write the picture to `path`, replacing it. Events must be settled. Errors: ASTER_ERR_IO. */
aster_status aster_demo_svg_write(const char *path, const struct demo_act *acts, size_t act_count,
                                  const struct demo_expectations *expectations, struct aster_error *error);

#endif
