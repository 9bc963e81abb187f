/* Ownership by a lease handle of Aster, over whatever serializer: the slots that the modes share. `self` points to a
 * struct whose first member is a demo_leased. */
#ifndef DEMO_LEASED_H
#define DEMO_LEASED_H

#include "aster/lease.h"
#include "cli/demo/ownership.h"

struct demo_leased {
    struct aster_serializer *serializer;
    struct aster_lease *lease;
    char holder[DEMO_NAME_MAX];
    int64_t ttl_ms;
    int64_t kept_epoch;     /* of the fence that check() found */
    int64_t value_revision; /* of the fenced value, as the grant told */
    aster_lease_callback on_status;
};

/* The fence that check() found, which the write goes by. */
struct aster_fence aster_demo_leased_fence(const struct demo_leased *leased);

aster_status aster_demo_leased_acquire(void *self, int64_t wait_ms, struct demo_grant *grant,
                                       struct aster_error *error);
aster_status aster_demo_leased_renewals(void *self, struct demo_renewals *renewals, struct aster_error *error);
aster_status aster_demo_leased_check(void *self, bool *allowed, int64_t *epoch, struct aster_error *error);
aster_status aster_demo_leased_release(void *self, struct aster_error *error);
void aster_demo_leased_fini(struct demo_leased *leased);

#endif
