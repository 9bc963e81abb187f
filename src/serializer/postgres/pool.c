#include "serializer/postgres/pool.h"

#include <stdlib.h>
#include <time.h>

#include "base/error.h"

aster_status aster_pg_pool_init(struct aster_pg_pool *pool, const struct aster_pg_place *place,
                                const struct aster_pg_use *use, size_t most, struct aster_error *error)
{
    struct aster_pg *idle = calloc(most, sizeof *idle);
    if (idle == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for %zu connections", most);
    }
    *pool = (struct aster_pg_pool){.idle = idle, .most = most, .place = place, .use = *use};
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->given_back, NULL);
    return ASTER_OK;
}

void aster_pg_pool_fini(struct aster_pg_pool *pool)
{
    if (pool->idle == NULL) {
        return;
    }
    for (size_t i = 0; i < pool->idle_count; i++) {
        aster_pg_close(&pool->idle[i]);
    }
    free(pool->idle);
    pthread_cond_destroy(&pool->given_back);
    pthread_mutex_destroy(&pool->mutex);
}

static struct timespec monotonic_after_ms(int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

aster_status aster_pg_pool_take(struct aster_pg_pool *pool, int64_t timeout_ms, struct aster_pg *pg, bool *fresh,
                                struct aster_error *error)
{
    const struct timespec until = monotonic_after_ms(timeout_ms);
    int code = 0;
    pthread_mutex_lock(&pool->mutex);
    while (pool->lent == pool->most && code == 0) {
        code = pthread_cond_clockwait(&pool->given_back, &pool->mutex, CLOCK_MONOTONIC, &until);
    }
    bool got = pool->lent < pool->most;
    *fresh = pool->idle_count == 0;
    if (got) {
        pool->lent++;
        if (!*fresh) {
            *pg = pool->idle[--pool->idle_count];
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!got) {
        return aster_error_set(error, ASTER_ERR_BUSY,
                               "all %zu connections for fenced writes are in use: nothing was applied; retry, or raise "
                               "writers_max",
                               pool->most);
    }
    if (!*fresh) {
        return ASTER_OK;
    }
    aster_status status = aster_pg_connect(pg, pool->place, &pool->use, error);
    if (status != ASTER_OK) {
        aster_pg_pool_give(pool, pg);
    }
    return status;
}

aster_status aster_pg_pool_renew(struct aster_pg_pool *pool, struct aster_pg *pg, struct aster_error *error)
{
    aster_pg_close(pg);
    return aster_pg_connect(pg, pool->place, &pool->use, error);
}

void aster_pg_pool_give(struct aster_pg_pool *pool, struct aster_pg *pg)
{
    bool good = pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK &&
                PQtransactionStatus(pg->conn) == PQTRANS_IDLE && PQpipelineStatus(pg->conn) == PQ_PIPELINE_OFF;
    if (!good) {
        aster_pg_close(pg);
    }
    pthread_mutex_lock(&pool->mutex);
    pool->lent--;
    if (good) {
        pool->idle[pool->idle_count++] = *pg;
    }
    pthread_cond_signal(&pool->given_back);
    pthread_mutex_unlock(&pool->mutex);
}
