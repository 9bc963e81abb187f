/* The fence rule on the three facts it needs, so that the table can ask without building a row. */
#ifndef ENGINE_FENCE_RULE_H
#define ENGINE_FENCE_RULE_H

#include "aster/fence.h"

#include <stdbool.h>

/* fence->resource is taken to be the right one; see aster_fence_verdict() for the whole rule. */
static inline enum aster_reason aster_fence_rule(int64_t epoch, bool held, struct aster_bytes holder,
                                                 const struct aster_fence *fence, struct aster_bytes writer)
{
    if (fence->epoch < epoch) {
        return ASTER_REASON_STALE_EPOCH;
    }
    if (fence->epoch > epoch) {
        return ASTER_REASON_FUTURE_EPOCH;
    }
    if (!held) {
        return ASTER_REASON_NOT_HELD;
    }
    if (!aster_bytes_equal(fence->holder, holder) || !aster_bytes_equal(writer, holder)) {
        return ASTER_REASON_NOT_HOLDER;
    }
    return ASTER_REASON_NONE;
}

#endif
