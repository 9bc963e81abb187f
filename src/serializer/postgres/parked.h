/* Acquires that wait for a lease that somebody else holds, and when to try each again. No lock of its own. */
#ifndef POSTGRES_PARKED_H
#define POSTGRES_PARKED_H

#include <stdbool.h>
#include <stddef.h>

#include "aster/sys/serializer.h"

struct aster_pg_parked_entry {
    struct aster_request *request;
    int64_t retry_ns;
};

struct aster_pg_parked {
    struct aster_pg_parked_entry *entries; /* in the order of arrival */
    size_t count;
    size_t capacity;
};

/* False: out of memory. */
bool aster_pg_parked_add(struct aster_pg_parked *parked, struct aster_request *request, int64_t retry_ns);

/* Take out the first one whose time has come, or NULL. */
struct aster_request *aster_pg_parked_due(struct aster_pg_parked *parked, int64_t now_ns);

/* When the next one is due; INT64_MAX when none waits. */
int64_t aster_pg_parked_next_ns(const struct aster_pg_parked *parked);

/* The resource was freed: the one that has waited longest for it is due now. */
void aster_pg_parked_wake(struct aster_pg_parked *parked, struct aster_bytes resource);

/* Take out `request`, or the first one when it is NULL. NULL when it is not there. */
struct aster_request *aster_pg_parked_take(struct aster_pg_parked *parked, const struct aster_request *request);

void aster_pg_parked_fini(struct aster_pg_parked *parked);

#endif
