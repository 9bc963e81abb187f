/* Deciding a batch of requests, with everything that can go wrong on the way. */
#ifndef POSTGRES_BATCH_H
#define POSTGRES_BATCH_H

#include "serializer/postgres/lane.h"

/* Decide and answer each of the requests, or hand it on to another lane. On the lane's thread. */
void aster_pg_batch_serve(struct aster_pg_lane *lane, struct aster_request **requests, size_t count);

#endif
