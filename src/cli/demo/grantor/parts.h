/* The acts of the story with a grantor. */
#ifndef DEMO_GRANTOR_PARTS_H
#define DEMO_GRANTOR_PARTS_H

#include "cli/demo/grantor/world.h"

/* Act 1: the lease and the invoice are a grantor's, and worker A's network is cut. Act 2: nobody acts as anybody else.
 */
aster_status aster_demo_takeover_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
aster_status aster_demo_identity_check(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);

#endif
