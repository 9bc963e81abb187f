/* Acquires in flight by their request id: a client that lost its link repeats the request on a new one, and the grant
 * that the first cannot receive is the one that the second will be told. Loop's thread. */
#ifndef GRANTOR_REPEATS_H
#define GRANTOR_REPEATS_H

#include "grantor/flight.h"

/* Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (no entropy). */
aster_status grantor_repeats_create(struct grantor_repeats **repeats, struct aster_error *error);
void grantor_repeats_destroy(struct grantor_repeats *repeats); /* NULL is legal */

/* From the start of a flight to its end; what is no acquire with a request id is not listed. */
void grantor_repeats_add(struct grantor_repeats *repeats, struct grantor_flight *flight);
void grantor_repeats_remove(struct grantor_repeats *repeats, struct grantor_flight *flight);

/* Is the same request of the same caller also on its way to the serializer for a link that lives? */
bool grantor_repeats_has_another(const struct grantor_repeats *repeats, const struct grantor_flight *flight);

#endif
