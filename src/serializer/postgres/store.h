/* One open store: what its lanes, fenced writes and readers share. */
#ifndef POSTGRES_STORE_H
#define POSTGRES_STORE_H

#include <pthread.h>

#include "aster/postgres.h"
#include "aster/sys/serializer.h"
#include "serializer/postgres/connection.h"
#include "serializer/postgres/pool.h"

struct aster_pg_lane;

/* Each lane is a thread and a connection, so that what waits in one delays nobody in another. */
enum aster_pg_lane_kind {
    ASTER_PG_RENEWALS, /* wait for nobody but a takeover that is under way */
    ASTER_PG_CHANGES,  /* everything else; short waits for row locks */
    ASTER_PG_BLOCKED,  /* what met a row lock: one by one, with patience */
    ASTER_PG_LANES
};

struct aster_pg_store {
    struct aster_postgres_options options; /* complete and checked */
    struct aster_pg_place place;
    struct aster_pg_lane *lanes[ASTER_PG_LANES];
    struct aster_pg_pool pool; /* of fenced writes and reads */

    pthread_mutex_t mutex;
    pthread_cond_t idle;
    size_t unanswered;
    size_t queued;
    bool closing;
};

/* Answer a request that the store has taken, and count it. No lock is held. */
void aster_pg_answer(struct aster_pg_store *store, struct aster_request *request, aster_status status,
                     const struct aster_decision *decision, const struct aster_error *error);

/* Slots of the vtable; see aster/sys/serializer.h. */
aster_status aster_pg_mutate(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                             aster_mutation mutation, void *user, struct aster_verdict *verdict,
                             struct aster_error *error);
aster_status aster_pg_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                           struct aster_error *error);
aster_status aster_pg_history(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                              struct aster_error *error);

#endif
