/* Turns what the workers say and the director does into events and spans of the timeline. */
#ifndef DEMO_NARRATOR_H
#define DEMO_NARRATOR_H

#include "cli/demo/director.h"

/* `facts` already contains the message. */
void aster_demo_narrate(struct demo_act *act, const struct demo_script *script, const struct demo_facts *facts,
                        enum demo_worker worker, const struct demo_message *message);

void aster_demo_narrate_begin(struct demo_act *act, const struct demo_incident *incident, int64_t at_ns);
void aster_demo_narrate_end(struct demo_act *act, const struct demo_incident *incident, int64_t at_ns);

#endif
