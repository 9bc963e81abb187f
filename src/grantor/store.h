/* The serializer that asterd serves. */
#ifndef GRANTOR_STORE_H
#define GRANTOR_STORE_H

#include "aster/serializer.h"

/* Open "mem:" or "sqlite:PATH" with this authorizer. Errors: ASTER_ERR_INVALID and those of the store. */
aster_status grantor_store_open(const char *store, aster_authorizer authorize, void *user,
                                struct aster_serializer **serializer, struct aster_error *error);

#endif
