/* What a client may ask of a serializer that decides by its own clock. */
#ifndef ENGINE_CLIENT_OPERATION_H
#define ENGINE_CLIENT_OPERATION_H

#include "aster/operation.h"

/* aster_operation_check(), and no verdict about expiry from outside (EXPIRE, EXPIRED_VERDICT): with one a client could
 * end the lease of a live holder. Errors: ASTER_ERR_INVALID. */
aster_status aster_client_operation_check(const struct aster_operation *operation, const struct aster_limits *limits,
                                          struct aster_error *error);

#endif
