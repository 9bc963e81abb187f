/* A lane: one thread and one connection that decide requests, all that wait in one statement. */
#ifndef POSTGRES_LANE_H
#define POSTGRES_LANE_H

#include "serializer/postgres/store.h"

/* Start the lane of that kind in store->lanes. `connected` (optional) is taken over as its first connection. */
aster_status aster_pg_lane_create(struct aster_pg_store *store, enum aster_pg_lane_kind kind,
                                  struct aster_pg *connected, struct aster_error *error);

/* What the connection of such a lane is for. */
struct aster_pg_use aster_pg_lane_use(enum aster_pg_lane_kind kind, const struct aster_postgres_options *options);

/* Queue a request that the store has counted as unanswered. Any thread. Errors, with the request still the caller's:
 * ASTER_ERR_CLOSED, ASTER_ERR_LIMIT. */
aster_status aster_pg_lane_push(struct aster_pg_lane *lane, struct aster_request *request, struct aster_error *error);

/* Let an acquire wait, to be tried again at retry_ns or when its resource is freed. Any thread. Errors, with the
 * request still the caller's: ASTER_ERR_CLOSED, ASTER_ERR_NOMEM. */
aster_status aster_pg_lane_park(struct aster_pg_lane *lane, struct aster_request *request, int64_t retry_ns,
                                struct aster_error *error);

/* Take the request out if it is queued or waits for a lease; the caller answers it. Any thread. */
bool aster_pg_lane_take_back(struct aster_pg_lane *lane, const struct aster_request *request);

/* Accept nothing more, and take out one request that is queued or waits, or NULL: call until then. Any thread. */
struct aster_request *aster_pg_lane_close(struct aster_pg_lane *lane);

/* End the thread after what it is doing. Lanes hand requests to each other, so every one of a store is stopped before
 * the first is freed. NULL is legal. */
void aster_pg_lane_stop(struct aster_pg_lane *lane);

/* Stop, and free. NULL is legal. */
void aster_pg_lane_destroy(struct aster_pg_lane *lane);

#endif
