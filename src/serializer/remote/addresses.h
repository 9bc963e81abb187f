/* Where a grantor is and who it must be. */
#ifndef REMOTE_ADDRESSES_H
#define REMOTE_ADDRESSES_H

#include "aster/grantor.h"
#include "platform/address.h"

struct remote_address {
    struct aster_address address;
    char server[ASTER_IDENTITY_MAX + 1]; /* empty = whoever a root vouches for */
};

struct remote_addresses {
    struct remote_address list[ASTER_GRANTOR_ADDRESSES_MAX];
    size_t count;
};

/* Take "[IDENTITY@]HOST:PORT,..." apart and resolve it; may block for the name service. `server` is for those without
 * an identity; with `must_name` one is needed. A name that does not resolve is an error only when no other does.
 * Errors: ASTER_ERR_INVALID, ASTER_ERR_UNREACHABLE. */
aster_status remote_addresses_resolve(const char *text, const char *server, bool must_name,
                                      struct remote_addresses *addresses, struct aster_error *error);

#endif
