/* The acts. Each plays for real, fills its act of the timeline and records what it expected and saw. */
#ifndef DEMO_ACTS_H
#define DEMO_ACTS_H

#include "aster/status.h"
#include "cli/demo/director.h"
#include "cli/demo/expectation.h"
#include "cli/demo/timeline.h"
#include "cli/demo/timeline_svg.h"

#define DEMO_PATH_MAX 4096

struct demo_stage {
    char directory[DEMO_PATH_MAX]; /* absolute; exists */
    bool sabotaged; /* act 1 must then be seen to fail: it writes without the fence, or the network is not cut */
    struct demo_grantor *grantor; /* of the story with a grantor: grantor/world.h */
    struct demo_expectations *expectations;
    void (*show)(struct demo_act *act, void *user);
    void *show_user;
};

/* "DIRECTORY/name" into `path`. Errors: ASTER_ERR_INVALID (too long). */
aster_status aster_demo_stage_path(const struct demo_stage *stage, const char *name, char path[DEMO_PATH_MAX],
                                   struct aster_error *error);

struct demo_part {
    aster_status (*play)(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
    const char *name; /* of the expectation that it was played to its end */
    const char *text;
};

#define DEMO_PARTS_MAX 3

/* What one run of the demo plays. */
struct demo_story {
    struct demo_part parts[DEMO_PARTS_MAX];
    size_t part_count;
    struct demo_caption caption;
    const char *kept_label; /* what is left to look at, beside the timeline and the invoice .. */
    const char *kept;       /* .. and its name in the directory */
    /* Before the first act and after the last; may be NULL. close() is called after an error too. */
    aster_status (*open)(struct demo_stage *stage, struct aster_error *error);
    void (*close)(struct demo_stage *stage);
};

extern const struct demo_story aster_demo_store_story;   /* SQLite and memory */
extern const struct demo_story aster_demo_grantor_story; /* over QUIC; refuses to open when grantors are not built */

/* Write what the store holds to "invoice-in-store.pdf". Errors: ASTER_ERR_IO. */
aster_status aster_demo_keep_published(const struct demo_stage *stage, const struct demo_stored *stored,
                                       struct aster_error *error);

/* Act 1: worker processes, the SQLite serializer, mutate_fenced and the triggers. Act 2: the memory serializer, in this
 * process. Act 3: act 1 with a plain lease. ASTER_OK: played to the end, look at the expectations. Otherwise it broke
 * off; the expectations that depend on the missing part are unmet. */
aster_status aster_demo_fenced_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
aster_status aster_demo_memory_check(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);
aster_status aster_demo_control_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error);

#endif
