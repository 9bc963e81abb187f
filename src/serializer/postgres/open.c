#include <stdlib.h>

#include "aster/postgres.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "engine/client_operation.h"
#include "serializer/postgres/lane.h"
#include "serializer/postgres/schema.h"

const char *aster_postgres_schema(void)
{
    return aster_postgres_schema_text;
}

void aster_pg_answer(struct aster_pg_store *store, struct aster_request *request, aster_status status,
                     const struct aster_decision *decision, const struct aster_error *error)
{
    request->complete(request, status, decision, error);
    pthread_mutex_lock(&store->mutex);
    if (--store->unanswered == 0) {
        pthread_cond_broadcast(&store->idle);
    }
    pthread_mutex_unlock(&store->mutex);
}

static struct aster_pg_lane *lane_for(const struct aster_pg_store *store, const struct aster_request *request)
{
    return store->lanes[request->operation.kind == ASTER_OP_RENEW ? ASTER_PG_RENEWALS : ASTER_PG_CHANGES];
}

static void submit(void *self, struct aster_request *request)
{
    struct aster_pg_store *store = self;
    struct aster_error error = ASTER_ERROR_INIT;
    pthread_mutex_lock(&store->mutex);
    store->unanswered++;
    pthread_mutex_unlock(&store->mutex);
    aster_status status = aster_client_operation_check(&request->operation, &store->options.limits, &error);
    if (status == ASTER_OK) {
        status = aster_pg_lane_push(lane_for(store, request), request, &error);
    }
    if (status != ASTER_OK) {
        aster_pg_answer(store, request, status, NULL, &error);
    }
}

static void cancel(void *self, struct aster_request *request)
{
    struct aster_pg_store *store = self;
    struct aster_error error = ASTER_ERROR_INIT;
    for (int i = 0; i < ASTER_PG_LANES; i++) {
        if (aster_pg_lane_take_back(store->lanes[i], request)) {
            aster_error_set(&error, ASTER_ERR_CANCELLED, "the caller cancelled the operation: nothing was applied");
            aster_pg_answer(store, request, ASTER_ERR_CANCELLED, NULL, &error);
            return;
        }
    }
}

static void close_store(void *self)
{
    struct aster_pg_store *store = self;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_request *request;
    aster_error_set(&error, ASTER_ERR_CLOSED, "the serializer was closed: nothing was applied");
    for (int i = 0; i < ASTER_PG_LANES; i++) {
        while ((request = aster_pg_lane_close(store->lanes[i])) != NULL) {
            aster_pg_answer(store, request, ASTER_ERR_CLOSED, NULL, &error);
        }
    }
}

static aster_status wait_answered(void *self, int64_t timeout_ms)
{
    struct aster_pg_store *store = self;
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t until_ns =
        aster_add_saturated((int64_t)until.tv_sec * 1000000000 + until.tv_nsec, aster_ms_to_ns(timeout_ms));
    until = (struct timespec){until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&store->mutex);
    while (store->unanswered > 0 && code == 0) {
        code = pthread_cond_clockwait(&store->idle, &store->mutex, CLOCK_MONOTONIC, &until);
    }
    aster_status status = store->unanswered == 0 ? ASTER_OK : ASTER_ERR_TIMEOUT;
    pthread_mutex_unlock(&store->mutex);
    return status;
}

static void destroy(void *self)
{
    struct aster_pg_store *store = self;
    for (int i = 0; i < ASTER_PG_LANES; i++) {
        aster_pg_lane_stop(store->lanes[i]);
    }
    for (int i = 0; i < ASTER_PG_LANES; i++) {
        aster_pg_lane_destroy(store->lanes[i]);
    }
    aster_pg_pool_fini(&store->pool);
    pthread_cond_destroy(&store->idle);
    pthread_mutex_destroy(&store->mutex);
    free(store->place.conninfo);
    free(store);
}

static const struct aster_serializer_ops ops = {
    .struct_size = sizeof ops,
    .name = "postgres",
    .traits = ASTER_SERIALIZER_QUEUES_WAITERS,
    .submit = submit,
    .cancel = cancel,
    .close = close_store,
    .wait = wait_answered,
    .destroy = destroy,
    .mutate_fenced = aster_pg_mutate,
    .list_page = aster_pg_list,
    .history = aster_pg_history,
};

static aster_status read_options(const struct aster_postgres_options *given, struct aster_postgres_options *options,
                                 struct aster_error *error)
{
    struct aster_postgres_options made = ASTER_POSTGRES_OPTIONS_INIT;
    aster_status status = aster_options_read(&made, given, "ASTER_POSTGRES_OPTIONS_INIT", error);
    const struct {
        const char *name;
        int64_t value;
        int64_t least;
        int64_t most;
    } ranges[] = {
        {"connect_timeout_ms", made.connect_timeout_ms, 100, 60000},
        {"statement_timeout_ms", made.statement_timeout_ms, 100, 60000},
        {"write_timeout_ms", made.write_timeout_ms, 100, 600000},
        {"poll_ms", made.poll_ms, 10, 60000},
        {"queue_max", (int64_t)made.queue_max, 1, INT32_MAX},
        {"batch_max", (int64_t)made.batch_max, 1, 4096},
        {"writers_max", (int64_t)made.writers_max, 1, 1000},
        {"limits.ttl_min_ms", made.limits.ttl_min_ms, 1, ASTER_TTL_HARD_MAX_MS},
        {"limits.ttl_max_ms", made.limits.ttl_max_ms, made.limits.ttl_min_ms, ASTER_TTL_HARD_MAX_MS},
        {"limits.value_max_bytes", (int64_t)made.limits.value_max_bytes, 0, ASTER_VALUE_MAX},
    };
    for (size_t i = 0; status == ASTER_OK && i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most) {
            status = aster_error_set(error, ASTER_ERR_INVALID, "%s is %lld: it must be %lld to %lld", ranges[i].name,
                                     (long long)ranges[i].value, (long long)ranges[i].least, (long long)ranges[i].most);
        }
    }
    if (status == ASTER_OK) {
        *options = made;
    }
    return status;
}

/* Before libpq tries to connect with it; the message must not repeat it, as it may hold a password. */
static aster_status read_conninfo(const char *conninfo, char **copy, struct aster_error *error)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo != NULL ? conninfo : "", NULL);
    if (parsed == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "this is no connection string of PostgreSQL's: write postgresql://USER@HOST/DATABASE");
    }
    PQconninfoFree(parsed);
    *copy = strdup(conninfo != NULL ? conninfo : "");
    return *copy != NULL ? ASTER_OK : aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
}

static aster_status open_store(struct aster_pg_store *store, const char *conninfo,
                               const struct aster_postgres_options *options, struct aster_error *error)
{
    struct aster_pg first = {.conn = NULL};
    aster_status status = read_options(options, &store->options, error);
    if (status == ASTER_OK) {
        status = read_conninfo(conninfo, &store->place.conninfo, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    store->place.connect_timeout_ms = store->options.connect_timeout_ms;
    const struct aster_pg_use changes = aster_pg_lane_use(ASTER_PG_CHANGES, &store->options);
    const struct aster_pg_use writes = {.statement_timeout_ms = store->options.write_timeout_ms};
    status = aster_pg_connect(&first, &store->place, &changes, error);
    if (status == ASTER_OK) {
        status = aster_pg_pool_init(&store->pool, &store->place, &writes, store->options.writers_max, error);
    }
    for (int i = 0; status == ASTER_OK && i < ASTER_PG_LANES; i++) {
        status = aster_pg_lane_create(store, (enum aster_pg_lane_kind)i, i == ASTER_PG_CHANGES ? &first : NULL, error);
    }
    aster_pg_close(&first);
    return status;
}

aster_status aster_postgres_open(const char *conninfo, const struct aster_postgres_options *options,
                                 struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_pg_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
    }
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->idle, NULL);
    aster_status status = open_store(store, conninfo, options, error);
    if (status == ASTER_OK) {
        status = aster_serializer_create(&ops, store, NULL, serializer, error);
    }
    if (status != ASTER_OK) {
        destroy(store);
    }
    return status;
}
