/* The demo for programs: the timeline and the expectations as one JSON object. */
#ifndef DEMO_TIMELINE_JSON_H
#define DEMO_TIMELINE_JSON_H

#include <jansson.h>

#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"

/* {"acts": [...], "expectations": [...], "met": bool}; NULL when out of memory. The caller owns the reference. */
json_t *aster_demo_json(const struct demo_act *acts, size_t act_count, const struct demo_expectations *expectations);

#endif
