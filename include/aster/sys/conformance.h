/* The conformance suite: one list of scenarios, run against any serializer. A back end is done when it passes. Also
 * installed as the program aster-conformance for the serializers that Aster ships. */
#ifndef ASTER_SYS_CONFORMANCE_H
#define ASTER_SYS_CONFORMANCE_H

#include <stdio.h>

#include "aster/serializer.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

struct aster_conformance_subject {
    size_t struct_size;
    const char *name;
    /* Open an empty serializer. `clock` is a virtual clock: judge expiry on it when you can; a subject that cannot sets
     * real_time and the suite sleeps (short ttls) instead. The suite destroys what it opened. */
    aster_status (*open)(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                         struct aster_error *error);
    /* Optional: what a restart of the serializer is (same durable state, held rows re-armed). NULL: skipped, and said.
     */
    aster_status (*restart)(void *user, struct aster_serializer **serializer, struct aster_error *error);
    bool real_time;
    void *user;
};

struct aster_conformance_result {
    int passed;
    int failed;
    int skipped; /* with the reason printed: an optional slot that the serializer does not offer */
};

/* Run every scenario, printing one line each to `out` (NULL = quiet). ASTER_OK when none failed, ASTER_ERR_INVALID
 * when any did; the counts are in *result (optional). */
ASTER_API aster_status aster_conformance_run(const struct aster_conformance_subject *subject, FILE *out,
                                             struct aster_conformance_result *result);

ASTER_END_DECLS

#endif
