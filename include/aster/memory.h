/* The memory serializer: leases between the threads of one process, for tests and for simulation. Nothing survives the
 * process. Fenced write: aster_mutate_fenced() runs the closure under the row's stripe lock, tx is NULL; a closure that
 * blocks stalls only its own stripe; calling the same serializer from inside it is refused (ASTER_ERR_REENTRANT).
 * Fair: waiters of a resource are granted first in, first out, at once on release, revoke or expiry. */
#ifndef ASTER_MEMORY_H
#define ASTER_MEMORY_H

#include "aster/serializer.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

struct aster_memory_options {
    size_t struct_size;
    const struct aster_clock *clock; /* NULL = the system clock */
    struct aster_limits limits;
    size_t stripes;             /* locks; rounded up to a power of two, 1..4096 */
    size_t history_max;         /* audit events kept; 0 = none */
    aster_authorizer authorize; /* NULL = everything is allowed */
    void *authorize_user;
};

#define ASTER_MEMORY_OPTIONS_INIT                                                                                      \
    {                                                                                                                  \
        sizeof(struct aster_memory_options), NULL, ASTER_LIMITS_INIT, 64, 1024, NULL, NULL                             \
    }

/* options may be NULL. Errors: ASTER_ERR_INVALID, ASTER_ERR_NOMEM, ASTER_ERR_IO (no entropy). */
ASTER_API aster_status aster_memory_open(const struct aster_memory_options *options,
                                         struct aster_serializer **serializer, struct aster_error *error);

/* For tests: behave as a grantor that restarted. Durable fields stay, every held row is re-armed with a full ttl from
 * now, no epoch advances; waiters are answered ASTER_ERR_CLOSED. Errors: ASTER_ERR_INVALID for another serializer. */
ASTER_API aster_status aster_memory_restart(struct aster_serializer *serializer, struct aster_error *error);

ASTER_END_DECLS

#endif
