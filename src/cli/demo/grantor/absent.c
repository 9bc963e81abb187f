/* Stands in for this folder when the build has no grantors. */
#include "base/error.h"
#include "cli/demo/acts.h"
#include "cli/demo/ownership.h"

static aster_status refuse(const struct demo_place *place, void **self, struct aster_error *error)
{
    (void)place;
    (void)self;
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED, "grantors are not in this build");
}

const struct demo_ownership_ops aster_demo_grantor_ownership = {.open = refuse};

static aster_status refuse_story(struct demo_stage *stage, struct aster_error *error)
{
    (void)stage;
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                           "grantors are not in this build: build with ngtcp2, or leave --grantor out");
}

const struct demo_story aster_demo_grantor_story = {.open = refuse_story};
