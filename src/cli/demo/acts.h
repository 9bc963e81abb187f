/* The three acts. Each plays for real, fills its act of the timeline and records what it expected and saw. */
#ifndef DEMO_ACTS_H
#define DEMO_ACTS_H

#include "aster/status.h"
#include "cli/demo/director.h"
#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"

#define DEMO_PATH_MAX 4096

struct demo_stage {
    char directory[DEMO_PATH_MAX]; /* absolute; exists */
    bool without_fence; /* sabotage: act 1 writes without carrying the fence, and must then be seen to fail */
    struct demo_expectations *expectations;
    void (*show)(struct demo_act *act, void *user);
    void *show_user;
};

/* "DIRECTORY/name" into `path`. Errors: ASTER_ERR_INVALID (too long). */
aster_status aster_demo_stage_path(const struct demo_stage *stage, const char *name, char path[DEMO_PATH_MAX],
                                   struct aster_error *error);

/* Act 1: worker processes, the SQLite serializer, mutate_fenced and the triggers. Act 2: the memory serializer, in this
 * process. Act 3: act 1 with a plain lease. ASTER_OK: played to the end, look at the expectations. Otherwise it broke
 * off; the expectations that depend on the missing part are unmet. */
aster_status aster_demo_fenced_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
aster_status aster_demo_memory_check(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
aster_status aster_demo_control_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);

#endif
