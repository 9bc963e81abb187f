#include "serializer/sqlite/worker.h"

#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "engine/client_operation.h"
#include "platform/thread.h"
#include "serializer/queue.h"
#include "serializer/sqlite/batch.h"
#include "serializer/sqlite/schema.h"

#define TURN_WAIT_NS INT64_C(2000000)  /* how long reads may stand back for a fenced write of this process */
#define RETRY_FIRST_NS INT64_C(100000) /* between attempts at another process's write lock */
#define RETRY_LAST_NS INT64_C(8000000)

struct aster_worker {
    struct aster_store *store;
    struct aster_connection connection;
    struct aster_batch *batch;
    pthread_t thread;
    int failed_attempts; /* the thread's: to get the write lock */
    bool turn_missed;    /* the thread's: a fenced write of this process was in the way, and a turn is kept */

    pthread_mutex_t mutex; /* all below */
    pthread_cond_t work;
    pthread_cond_t idle;
    struct aster_queue fresh;    /* inspections and acquires, which a read may answer */
    struct aster_queue renewals; /* their commit is not synced */
    struct aster_queue changes;  /* theirs is */
    size_t queued;
    size_t unanswered;
    bool closing;
    bool stopping;
};

static void answer(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                   const struct aster_error *error)
{
    request->complete(request, status, decision, error);
}

static void count_answered(struct aster_worker *worker, size_t count)
{
    pthread_mutex_lock(&worker->mutex);
    worker->unanswered -= count;
    if (worker->unanswered == 0) {
        pthread_cond_broadcast(&worker->idle);
    }
    pthread_mutex_unlock(&worker->mutex);
}

/* Answer every request of `queue`, which is out of reach of other threads, with one failure. */
static void answer_all(struct aster_worker *worker, struct aster_queue queue, const struct aster_error *error)
{
    size_t count = 0;
    struct aster_request *request;
    while ((request = aster_queue_pop(&queue)) != NULL) {
        answer(request, error->status, NULL, error);
        count++;
    }
    count_answered(worker, count);
}

static struct aster_queue *queue_for(struct aster_worker *worker, enum aster_operation_kind kind)
{
    switch (kind) {
    case ASTER_OP_INSPECT:
    case ASTER_OP_ACQUIRE:
        return &worker->fresh;
    case ASTER_OP_RENEW:
        return &worker->renewals;
    default:
        return &worker->changes;
    }
}

static aster_status enqueue(struct aster_worker *worker, struct aster_request *request, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&worker->mutex);
    if (worker->closing) {
        status = aster_error_set(error, ASTER_ERR_CLOSED, "the serializer is closed: nothing was applied");
    } else if (worker->queued >= worker->store->options.queue_max && request->operation.kind != ASTER_OP_RENEW) {
        /* Other traffic must not cost a lease; renewals are as many as there are leases. */
        status = aster_error_set(error, ASTER_ERR_LIMIT,
                                 "queue_max is %zu and that many requests wait for a commit: retry later",
                                 worker->store->options.queue_max);
    } else {
        request->slot[0] = NULL;
        aster_queue_push(queue_for(worker, request->operation.kind), request);
        worker->queued++;
        worker->unanswered++;
        pthread_cond_signal(&worker->work);
    }
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

void aster_worker_submit(struct aster_worker *worker, struct aster_request *request)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_client_operation_check(&request->operation, &worker->store->options.limits, &error);
    if (status == ASTER_OK) {
        status = enqueue(worker, request, &error);
    }
    if (status != ASTER_OK) {
        answer(request, status, NULL, &error);
    }
}

static bool is_same(struct aster_request *request, const void *user)
{
    return request == user;
}

static bool is_any(struct aster_request *request, const void *user)
{
    (void)request;
    (void)user;
    return true;
}

/* Take matching requests out of every queue, renewals last. */
static struct aster_queue take_queued(struct aster_worker *worker,
                                      bool (*match)(struct aster_request *request, const void *user), const void *user)
{
    struct aster_queue taken = {NULL, NULL};
    struct aster_queue *const queues[] = {&worker->fresh, &worker->changes, &worker->renewals};
    pthread_mutex_lock(&worker->mutex);
    for (size_t i = 0; i < sizeof queues / sizeof queues[0]; i++) {
        struct aster_queue part = aster_queue_take(queues[i], match, user);
        struct aster_request *request;
        while ((request = aster_queue_pop(&part)) != NULL) {
            aster_queue_push(&taken, request);
            worker->queued--;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
    return (struct aster_queue){taken.first, NULL};
}

void aster_worker_cancel(struct aster_worker *worker, const struct aster_request *request)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_error_set(&error, ASTER_ERR_CANCELLED, "the caller cancelled the operation: nothing was applied");
    answer_all(worker, take_queued(worker, is_same, request), &error);
}

void aster_worker_close(struct aster_worker *worker)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_error_set(&error, ASTER_ERR_CLOSED, "the serializer was closed: nothing was applied");
    pthread_mutex_lock(&worker->mutex);
    worker->closing = true;
    pthread_mutex_unlock(&worker->mutex);
    answer_all(worker, take_queued(worker, is_any, NULL), &error);
}

static struct timespec monotonic_after(int64_t ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until_ns = aster_add_saturated((int64_t)now.tv_sec * 1000000000 + now.tv_nsec, ns);
    return (struct timespec){until_ns / 1000000000, until_ns % 1000000000};
}

aster_status aster_worker_wait(struct aster_worker *worker, int64_t timeout_ms)
{
    const struct timespec until = monotonic_after(aster_ms_to_ns(timeout_ms));
    pthread_mutex_lock(&worker->mutex);
    int code = 0;
    while (worker->unanswered > 0 && code == 0) {
        code = pthread_cond_clockwait(&worker->idle, &worker->mutex, CLOCK_MONOTONIC, &until);
    }
    aster_status status = worker->unanswered == 0 ? ASTER_OK : ASTER_ERR_TIMEOUT;
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

/* Move up to a batch of requests from `queue` into the batch. */
static size_t fill_batch(struct aster_worker *worker, struct aster_queue *queue)
{
    aster_batch_reset(worker->batch);
    pthread_mutex_lock(&worker->mutex);
    while (queue->first != NULL && aster_batch_add(worker->batch, queue->first)) {
        aster_queue_pop(queue);
        worker->queued--;
    }
    pthread_mutex_unlock(&worker->mutex);
    return aster_batch_count(worker->batch);
}

static void answer_batch(struct aster_worker *worker)
{
    size_t answered = 0;
    for (size_t i = 0; i < aster_batch_count(worker->batch); i++) {
        const struct aster_batch_entry *entry = aster_batch_entry_at(worker->batch, i);
        if (entry->decided) {
            answer(entry->request, entry->status, entry->status == ASTER_OK ? &entry->decision : NULL, entry->error);
            answered++;
        }
    }
    if (answered > 0) {
        count_answered(worker, answered);
    }
}

static void serve_reads(struct aster_worker *worker)
{
    if (fill_batch(worker, &worker->fresh) == 0) {
        return;
    }
    aster_connection_wait_for(&worker->connection, worker->store->options.busy_timeout_ms);
    aster_batch_read(worker->batch);
    pthread_mutex_lock(&worker->mutex);
    for (size_t i = 0; i < aster_batch_count(worker->batch); i++) {
        const struct aster_batch_entry *entry = aster_batch_entry_at(worker->batch, i);
        if (!entry->decided) {
            aster_queue_push(&worker->changes, entry->request);
            worker->queued++;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
    answer_batch(worker);
}

struct overdue {
    int64_t now_ns;     /* on the store's clock, for deadlines */
    uintptr_t now_real; /* for how long the lock has been waited for; never 0 */
    uintptr_t bound;
    bool timed_out; /* which of the two to take */
};

static bool is_overdue(struct aster_request *request, const void *user)
{
    const struct overdue *overdue = user;
    if (overdue->timed_out) {
        return request->deadline_ns != 0 && overdue->now_ns > request->deadline_ns;
    }
    if (request->slot[0] == NULL) {
        request->slot[0] = (void *)overdue->now_real; /* the first attempt for this one */
    }
    return overdue->now_real - (uintptr_t)request->slot[0] >= overdue->bound;
}

/* The write lock was not to be had: answer those that have waited long enough. */
static void answer_overdue(struct aster_worker *worker, const struct aster_error *busy)
{
    struct overdue overdue = {
        .now_ns = aster_clock_now_ns(worker->store->clock),
        .now_real = (uintptr_t)aster_clock_now_ns(aster_clock_system()) | 1,
        .bound = (uintptr_t)aster_ms_to_ns(worker->store->options.busy_timeout_ms),
        .timed_out = true,
    };
    struct aster_error error = ASTER_ERROR_INIT;
    aster_error_set(&error, ASTER_ERR_TIMEOUT,
                    "the deadline passed while another writer held the database's write lock: nothing was applied; "
                    "retry");
    answer_all(worker, take_queued(worker, is_overdue, &overdue), &error);
    overdue.timed_out = false;
    answer_all(worker, take_queued(worker, is_overdue, &overdue), busy);
}

static void pause_before_retry(struct aster_worker *worker)
{
    int64_t step = worker->failed_attempts < 6 ? RETRY_FIRST_NS << worker->failed_attempts : RETRY_LAST_NS;
    worker->failed_attempts++;
    worker->connection.jitter = worker->connection.jitter * UINT64_C(6364136223846793005) + 1442695040888963407U;
    int64_t pause_ns = step / 2 + (int64_t)((worker->connection.jitter >> 33) % (uint64_t)step);
    const struct timespec until = monotonic_after(pause_ns);
    pthread_mutex_lock(&worker->mutex);
    if (worker->fresh.first == NULL) {
        pthread_cond_clockwait(&worker->work, &worker->mutex, CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&worker->mutex);
}

/* Take the turn and the write lock without waiting for other processes: the thread has reads to answer meanwhile. */
static aster_status begin(struct aster_worker *worker, bool synced, struct aster_error *error)
{
    worker->turn_missed = !aster_turns_take(&worker->store->turns, ASTER_WRITER_WORKER, TURN_WAIT_NS);
    if (worker->turn_missed) {
        return aster_error_set(error, ASTER_ERR_BUSY,
                               "a fenced write of this process has run for more than %lld ms: nothing was applied; "
                               "retry, and keep mutations short",
                               (long long)worker->store->options.busy_timeout_ms);
    }
    worker->connection.busy_until_ns = 0;
    aster_status status = aster_connection_begin_write(&worker->connection, synced, error);
    aster_connection_wait_for(&worker->connection, worker->store->options.busy_timeout_ms);
    if (status != ASTER_OK) {
        aster_turns_give(&worker->store->turns, ASTER_WRITER_WORKER);
    }
    return status;
}

/* Commit one batch of `queue`. Returns false when the write lock is held by another. */
static bool serve_writes(struct aster_worker *worker, struct aster_queue *queue, bool synced)
{
    pthread_mutex_lock(&worker->mutex);
    bool empty = queue->first == NULL;
    pthread_mutex_unlock(&worker->mutex);
    if (empty) {
        return true;
    }
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = begin(worker, synced, &error);
    if (status == ASTER_ERR_BUSY) {
        answer_overdue(worker, &error);
        return false;
    }
    if (status != ASTER_OK) {
        answer_all(worker, take_queued(worker, is_any, NULL), &error);
        return true;
    }
    worker->failed_attempts = 0;
    if (fill_batch(worker, queue) > 0) {
        aster_batch_write(worker->batch, synced);
    } else {
        aster_connection_rollback(&worker->connection); /* cancelled meanwhile */
    }
    aster_turns_give(&worker->store->turns, ASTER_WRITER_WORKER);
    answer_batch(worker);
    return true;
}

static bool wait_for_work(struct aster_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    while (worker->queued == 0 && !worker->stopping) {
        pthread_cond_wait(&worker->work, &worker->mutex);
    }
    bool work = worker->queued > 0;
    pthread_mutex_unlock(&worker->mutex);
    return work;
}

static bool has_writes(struct aster_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    bool writes = worker->renewals.first != NULL || worker->changes.first != NULL;
    pthread_mutex_unlock(&worker->mutex);
    return writes;
}

static void *work(void *user)
{
    struct aster_worker *worker = user;
    while (wait_for_work(worker)) {
        serve_reads(worker);
        bool served = serve_writes(worker, &worker->renewals, false) && serve_writes(worker, &worker->changes, true);
        if (!served && worker->turn_missed && !has_writes(worker)) {
            aster_turns_withdraw(&worker->store->turns); /* all of them were answered or cancelled meanwhile */
        } else if (!served && !worker->turn_missed) {
            pause_before_retry(worker);
        }
    }
    aster_turns_withdraw(&worker->store->turns);
    return NULL;
}

static aster_status open_store(struct aster_worker *worker, struct aster_error *error)
{
    struct aster_store *store = worker->store;
    aster_status status = aster_store_connect(store, &worker->connection, error);
    if (status == ASTER_OK) {
        status = aster_schema_prepare(&worker->connection, error);
    }
    if (status == ASTER_OK) {
        status = aster_schema_arm(&worker->connection, store->clock, &store->boot, error);
    }
    if (status == ASTER_OK) {
        status = aster_batch_create(store, &worker->connection, store->options.batch_max, &worker->batch, error);
    }
    return status;
}

static aster_status start(struct aster_worker *worker, struct aster_error *error)
{
    int code = aster_thread_start(&worker->thread, work, worker);
    if (code != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start the thread that writes to the store");
    }
    return ASTER_OK;
}

static void free_worker(struct aster_worker *worker)
{
    aster_batch_destroy(worker->batch);
    aster_connection_fini(&worker->connection);
    pthread_cond_destroy(&worker->idle);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}

aster_status aster_worker_create(struct aster_store *store, struct aster_worker **worker, struct aster_error *error)
{
    struct aster_worker *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
    }
    made->store = store;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->idle, NULL);
    aster_status status = open_store(made, error);
    if (status == ASTER_OK) {
        status = start(made, error);
    }
    if (status != ASTER_OK) {
        free_worker(made);
        return status;
    }
    *worker = made;
    return ASTER_OK;
}

void aster_worker_destroy(struct aster_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    aster_worker_close(worker);
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    free_worker(worker);
}
