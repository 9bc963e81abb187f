/* Acquires that wait, for a serializer that keeps no queue by itself: one queue per resource, first in, first out. Only
 * the head of a queue is tried: when the resource is freed through this server, when the lease should have expired, and
 * once a second in case somebody else freed it. Loop's thread. */
#ifndef GRANTOR_PARKING_H
#define GRANTOR_PARKING_H

#include "grantor/flight.h"

/* Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO. */
aster_status grantor_parking_create(struct aster_loop *loop, struct grantor_parking **parking,
                                    struct aster_error *error);
/* Nobody may be parked any more. NULL is legal. */
void grantor_parking_destroy(struct grantor_parking *parking);

/* Before the first try: true when others are ahead and the flight now waits behind them. */
bool grantor_parking_join(struct grantor_parking *parking, struct grantor_flight *flight);

/* After a try: true when it was denied, has time left and waits on; else it is out of its queue and to be answered. */
bool grantor_parking_keep(struct grantor_parking *parking, struct grantor_flight *flight, aster_status status,
                          const struct aster_decision *decision);

/* It waits, and is not being tried. */
bool grantor_parking_is_parked(const struct grantor_flight *flight);

/* Take it out, true, unless it is being tried: then keep() will not keep it. */
bool grantor_parking_leave(struct grantor_parking *parking, struct grantor_flight *flight);

/* The resource was freed. */
void grantor_parking_wake(struct grantor_parking *parking, struct aster_bytes resource);

/* Answer everyone who waits with CLOSED, also from now on. */
void grantor_parking_close(struct grantor_parking *parking);

#endif
