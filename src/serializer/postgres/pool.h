/* Connections that fenced writes and reads borrow for one call each. Thread-safe. */
#ifndef POSTGRES_POOL_H
#define POSTGRES_POOL_H

#include <pthread.h>

#include "serializer/postgres/connection.h"

struct aster_pg_pool {
    pthread_mutex_t mutex;
    pthread_cond_t given_back;
    struct aster_pg *idle; /* `most` places, the first `idle_count` of them taken */
    size_t idle_count;
    size_t lent;
    size_t most;
    const struct aster_pg_place *place;
    struct aster_pg_use use;
};

aster_status aster_pg_pool_init(struct aster_pg_pool *pool, const struct aster_pg_place *place,
                                const struct aster_pg_use *use, size_t most, struct aster_error *error);
void aster_pg_pool_fini(struct aster_pg_pool *pool);

/* Borrow a connection: an idle one, which may have broken meanwhile (*fresh false), or a new one. Waits for
 * timeout_ms when all are lent. Errors: ASTER_ERR_BUSY, and as aster_pg_connect(). */
aster_status aster_pg_pool_take(struct aster_pg_pool *pool, int64_t timeout_ms, struct aster_pg *pg, bool *fresh,
                                struct aster_error *error);

/* Connect anew in the place of a borrowed connection that turned out to be broken. */
aster_status aster_pg_pool_renew(struct aster_pg_pool *pool, struct aster_pg *pg, struct aster_error *error);

/* Give it back; one that is not idle any more is closed. */
void aster_pg_pool_give(struct aster_pg_pool *pool, struct aster_pg *pg);

#endif
