/* What is in flight by session and id, so that a CANCEL costs the same whatever else is on its way. Loop's thread. */
#ifndef GRANTOR_CALLS_H
#define GRANTOR_CALLS_H

#include "grantor/flight.h"

/* Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (no entropy). */
aster_status grantor_calls_create(struct grantor_calls **calls, struct aster_error *error);
void grantor_calls_destroy(struct grantor_calls *calls); /* NULL is legal */

/* While the flight belongs to a session. */
void grantor_calls_add(struct grantor_calls *calls, struct grantor_flight *flight);
void grantor_calls_remove(struct grantor_calls *calls, struct grantor_flight *flight);

/* NULL when there is none; of several under one id, which only a careless client has, the youngest. */
struct grantor_flight *grantor_calls_find(const struct grantor_calls *calls, const struct grantor_session *session,
                                          uint64_t id);

#endif
