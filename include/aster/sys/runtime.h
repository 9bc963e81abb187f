/* The threads behind the lease handles: one renewer for every handle, one dispatcher for callbacks. A process has one
 * runtime by default, made on first use; tests make their own over a virtual clock. */
#ifndef ASTER_SYS_RUNTIME_H
#define ASTER_SYS_RUNTIME_H

#include "aster/lease.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

struct aster_runtime_options {
    size_t struct_size;
    const struct aster_clock *clock; /* NULL = the system clock. With a virtual clock there are no threads: what is due
                                        runs inside the clock's advance and inside the calls, callbacks last */
    size_t handles_max;              /* ASTER_ERR_LIMIT beyond it */
};

#define ASTER_RUNTIME_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct aster_runtime_options), NULL, 1048576                                                            \
    }

/* Start a runtime; the caller destroys it. options may be NULL. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (threads or
 * descriptors). Thread-safe. */
ASTER_API aster_status aster_runtime_create(const struct aster_runtime_options *options, struct aster_runtime **runtime,
                                            struct aster_error *error);

/* Every handle must have been destroyed. Stops the threads; does not wait for serializers: a handle to which one still
 * owes an answer is freed when that comes. Not from inside a callback. NULL is legal. */
ASTER_API void aster_runtime_destroy(struct aster_runtime *runtime);

/* Handles alive, including those whose memory waits for a serializer's answer. For leak checks. */
ASTER_API size_t aster_runtime_handles(const struct aster_runtime *runtime);

ASTER_END_DECLS

#endif
