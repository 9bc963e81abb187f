/* The leases that one identity holds: counted, or taken away on an operator's order. From a thread that may wait, never
 * the loop's. */
#ifndef GRANTOR_LEASES_H
#define GRANTOR_LEASES_H

#include "grantor/state.h"

struct grantor_leases {
    uint64_t count;
    int64_t remaining_ns; /* of the one that lasts longest */
};

/* Errors: those of the store. */
aster_status grantor_leases_count(struct grantor_state *state, struct aster_bytes holder, struct grantor_leases *leases,
                                  struct aster_error *error);

/* Revoke every one of them as the server's own operation in the name of `actor`, and add to *revoked how many it were.
 * Errors: those of the store, with how far it came: what was revoked stays so. */
aster_status grantor_leases_revoke(struct grantor_state *state, struct aster_bytes holder, struct aster_bytes actor,
                                   uint64_t *revoked, struct aster_error *error);

#endif
