#include "serializer/postgres/lane.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "platform/entropy.h"
#include "platform/thread.h"
#include "serializer/postgres/batch.h"
#include "serializer/postgres/lane_internal.h"

#define LOCK_PATIENCE_MS 50 /* in a lane that others share */
#define BLOCKED_PATIENCE_MS 1000
#define LOOK_AGAIN_NS INT64_C(1000000000)
#define GATHER_NS INT64_C(2000000)
#define GATHER_SHARE 16 /* of the time that the last batch took */

static void wake(struct aster_pg_lane *lane)
{
    const uint64_t one = 1;
    ssize_t written = write(lane->wake_fd, &one, sizeof one);
    (void)written; /* it can only fail when the counter is full, and then the thread wakes anyway */
}

aster_status aster_pg_lane_push(struct aster_pg_lane *lane, struct aster_request *request, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&lane->mutex);
    bool wakes = false;
    if (lane->closing) {
        status = aster_error_set(error, ASTER_ERR_CLOSED, "the serializer is closed: nothing was applied");
    } else if (lane->queued >= lane->store->options.queue_max && lane->kind != ASTER_PG_RENEWALS) {
        /* Other traffic must not cost a lease; renewals are as many as there are leases. */
        status = aster_error_set(error, ASTER_ERR_LIMIT,
                                 "queue_max is %zu and that many requests wait for a connection: retry later",
                                 lane->store->options.queue_max);
    } else {
        aster_queue_push(&lane->queue, request);
        lane->queued++;
        wakes = lane->queued == 1 || lane->queued == lane->gathering;
    }
    pthread_mutex_unlock(&lane->mutex);
    if (wakes) {
        wake(lane);
    }
    return status;
}

aster_status aster_pg_lane_park(struct aster_pg_lane *lane, struct aster_request *request, int64_t retry_ns,
                                struct aster_error *error)
{
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&lane->mutex);
    if (lane->closing) {
        status = aster_error_set(error, ASTER_ERR_CLOSED, "the serializer was closed: nothing was applied");
    } else if (!aster_pg_parked_add(&lane->parked, request, retry_ns)) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a waiting acquire: nothing was applied");
    }
    pthread_mutex_unlock(&lane->mutex);
    if (status == ASTER_OK && !pthread_equal(pthread_self(), lane->thread)) {
        wake(lane);
    }
    return status;
}

static bool is_same(struct aster_request *request, const void *user)
{
    return request == user;
}

bool aster_pg_lane_take_back(struct aster_pg_lane *lane, const struct aster_request *request)
{
    pthread_mutex_lock(&lane->mutex);
    bool found = aster_queue_take(&lane->queue, is_same, request).first != NULL;
    if (found) {
        lane->queued--;
    } else {
        found = aster_pg_parked_take(&lane->parked, request) != NULL;
    }
    pthread_mutex_unlock(&lane->mutex);
    return found;
}

struct aster_request *aster_pg_lane_close(struct aster_pg_lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    lane->closing = true;
    struct aster_request *request = aster_queue_pop(&lane->queue);
    if (request != NULL) {
        lane->queued--;
    } else {
        request = aster_pg_parked_take(&lane->parked, NULL);
    }
    pthread_mutex_unlock(&lane->mutex);
    return request;
}

/* Up to a batch: those who have waited first. What blocks is taken one by one. */
static size_t fill_batch(struct aster_pg_lane *lane)
{
    size_t most = lane->kind == ASTER_PG_BLOCKED ? 1 : lane->store->options.batch_max;
    int64_t now_ns = aster_clock_now_ns(aster_clock_system());
    size_t count = 0;
    struct aster_request *request;
    pthread_mutex_lock(&lane->mutex);
    while (count < most && (request = aster_pg_parked_due(&lane->parked, now_ns)) != NULL) {
        lane->batch[count++] = request;
    }
    while (count < most && (request = aster_queue_pop(&lane->queue)) != NULL) {
        lane->batch[count++] = request;
        lane->queued--;
    }
    pthread_mutex_unlock(&lane->mutex);
    return count;
}

/* Who waits for a resource that was freed may try now. */
static void take_notifications(struct aster_pg_lane *lane)
{
    PGnotify *told;
    while (lane->pg.conn != NULL && (told = PQnotifies(lane->pg.conn)) != NULL) {
        pthread_mutex_lock(&lane->mutex);
        aster_pg_parked_wake(&lane->parked, aster_text(told->extra));
        pthread_mutex_unlock(&lane->mutex);
        PQfreemem(told);
    }
}

/* A connection that ends while it is idle is found out now and not by the next request. */
static void read_socket(struct aster_pg_lane *lane)
{
    if (PQconsumeInput(lane->pg.conn) != 1) {
        aster_pg_close(&lane->pg);
    }
}

/* A suspended machine stops the clock that poll() goes by, not the leases': look again at least once a second. */
static struct timespec timeout_of(int64_t until_ns)
{
    int64_t left_ns = until_ns == INT64_MAX ? LOOK_AGAIN_NS : until_ns - aster_clock_now_ns(aster_clock_system());
    left_ns = left_ns < 0 ? 0 : left_ns < LOOK_AGAIN_NS ? left_ns : LOOK_AGAIN_NS;
    return (struct timespec){left_ns / 1000000000, left_ns % 1000000000};
}

static void sleep_until(struct aster_pg_lane *lane, int64_t until_ns)
{
    struct pollfd watched[2] = {{.fd = lane->wake_fd, .events = POLLIN},
                                {.fd = lane->pg.conn != NULL ? PQsocket(lane->pg.conn) : -1, .events = POLLIN}};
    const struct timespec timeout = timeout_of(until_ns);
    if (ppoll(watched, 2, &timeout, NULL) <= 0) {
        return;
    }
    uint64_t wakes;
    if (watched[0].revents != 0 && read(lane->wake_fd, &wakes, sizeof wakes) < 0) {
        return;
    }
    if (watched[1].revents != 0) {
        read_socket(lane);
    }
}

/* False: the lane is to end. */
static bool wait_for_work(struct aster_pg_lane *lane)
{
    for (;;) {
        take_notifications(lane);
        pthread_mutex_lock(&lane->mutex);
        bool stopping = lane->stopping;
        bool has_queued = lane->queue.first != NULL;
        int64_t next_ns = aster_pg_parked_next_ns(&lane->parked);
        pthread_mutex_unlock(&lane->mutex);
        if (stopping || has_queued || next_ns <= aster_clock_now_ns(aster_clock_system())) {
            return !stopping;
        }
        sleep_until(lane, next_ns);
    }
}

/* Whoever was answered just now may ask again at once. A short wait for as many as have been here lets them share the
 * next commit; without it they would fall apart into two groups that wait for each other's. One alone waits for nobody.
 */
static void gather(struct aster_pg_lane *lane)
{
    int64_t longest_ns = lane->serving_ns / GATHER_SHARE < GATHER_NS ? lane->serving_ns / GATHER_SHARE : GATHER_NS;
    int64_t until_ns = lane->served_ns + longest_ns;
    for (;;) {
        pthread_mutex_lock(&lane->mutex);
        bool enough = lane->queued >= lane->expected || lane->stopping;
        lane->gathering = enough ? 0 : lane->expected;
        pthread_mutex_unlock(&lane->mutex);
        if (enough || aster_clock_now_ns(aster_clock_system()) >= until_ns) {
            return;
        }
        sleep_until(lane, until_ns);
    }
}

static void serve(struct aster_pg_lane *lane, size_t count)
{
    int64_t start_ns = aster_clock_now_ns(aster_clock_system());
    aster_pg_batch_serve(lane, lane->batch, count);
    lane->served_ns = aster_clock_now_ns(aster_clock_system());
    lane->serving_ns = lane->served_ns - start_ns;
    pthread_mutex_lock(&lane->mutex);
    size_t active = count + lane->queued;
    pthread_mutex_unlock(&lane->mutex);
    lane->expected = active < lane->store->options.batch_max ? active : lane->store->options.batch_max;
}

static void *work(void *user)
{
    struct aster_pg_lane *lane = user;
    while (wait_for_work(lane)) {
        gather(lane);
        size_t count = fill_batch(lane);
        if (count > 0) {
            serve(lane, count);
        }
    }
    return NULL;
}

struct aster_pg_use aster_pg_lane_use(enum aster_pg_lane_kind kind, const struct aster_postgres_options *options)
{
    int64_t patience_ms = kind == ASTER_PG_BLOCKED ? BLOCKED_PATIENCE_MS : LOCK_PATIENCE_MS;
    int64_t most_ms = options->statement_timeout_ms / 2;
    return (struct aster_pg_use){.statement_timeout_ms = options->statement_timeout_ms,
                                 .lock_timeout_ms = patience_ms < most_ms ? patience_ms : most_ms,
                                 .listens = kind == ASTER_PG_CHANGES};
}

static aster_status start(struct aster_pg_lane *lane, struct aster_error *error)
{
    lane->batch = calloc(lane->store->options.batch_max, sizeof *lane->batch);
    if (lane->batch == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a batch");
    }
    lane->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lane->wake_fd < 0) {
        return aster_error_set(error, ASTER_ERR_IO, "cannot make an event descriptor: are there too many open files?");
    }
    aster_status status = aster_entropy_fill(&lane->jitter, sizeof lane->jitter, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = aster_thread_start(&lane->thread, work, lane);
    if (code != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start a thread for PostgreSQL");
    }
    lane->started = true;
    return ASTER_OK;
}

aster_status aster_pg_lane_create(struct aster_pg_store *store, enum aster_pg_lane_kind kind,
                                  struct aster_pg *connected, struct aster_error *error)
{
    struct aster_pg_lane *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
    }
    made->store = store;
    made->kind = kind;
    made->wake_fd = -1;
    pthread_mutex_init(&made->mutex, NULL);
    if (connected != NULL) {
        made->pg = *connected;
        connected->conn = NULL;
    }
    aster_status status = start(made, error);
    if (status != ASTER_OK) {
        aster_pg_lane_destroy(made);
        return status;
    }
    store->lanes[kind] = made;
    return ASTER_OK;
}

void aster_pg_lane_stop(struct aster_pg_lane *lane)
{
    if (lane == NULL || !lane->started) {
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    lane->stopping = true;
    pthread_mutex_unlock(&lane->mutex);
    wake(lane);
    pthread_join(lane->thread, NULL);
    lane->started = false;
}

void aster_pg_lane_destroy(struct aster_pg_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    aster_pg_lane_stop(lane);
    aster_pg_close(&lane->pg);
    aster_pg_statement_fini(&lane->statement);
    aster_pg_parked_fini(&lane->parked);
    if (lane->wake_fd >= 0) {
        close(lane->wake_fd);
    }
    pthread_mutex_destroy(&lane->mutex);
    free(lane->batch);
    free(lane);
}
