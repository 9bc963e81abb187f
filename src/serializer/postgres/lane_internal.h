/* A lane's own state, for lane.c and batch.c. */
#ifndef POSTGRES_LANE_INTERNAL_H
#define POSTGRES_LANE_INTERNAL_H

#include "serializer/postgres/lane.h"
#include "serializer/postgres/parked.h"
#include "serializer/postgres/statement.h"
#include "serializer/queue.h"

struct aster_pg_lane {
    struct aster_pg_store *store;
    enum aster_pg_lane_kind kind;
    pthread_t thread;
    bool started;
    int wake_fd;

    pthread_mutex_t mutex; /* over these */
    struct aster_queue queue;
    size_t queued;
    size_t gathering; /* wake the thread when so many are queued; 0 = it does not wait for more */
    struct aster_pg_parked parked;
    bool closing;
    bool stopping;

    /* The thread's own. */
    struct aster_pg pg;
    struct aster_pg_statement statement;
    struct aster_request **batch;
    size_t expected;    /* requests that were under way at the same time lately */
    int64_t served_ns;  /* when the last batch was answered */
    int64_t serving_ns; /* and how long that took */
    uint64_t jitter;
    unsigned failures;     /* to connect, in a row */
    int64_t not_before_ns; /* do not try to connect until then */
    struct aster_error unreachable;
};

#endif
