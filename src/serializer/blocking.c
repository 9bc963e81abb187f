/* A serializer over a blocking function: a bounded queue and the threads that empty it. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "aster/sys/serializer.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "engine/client_operation.h"
#include "platform/thread.h"

#define THREADS_MAX 256

struct blocking {
    aster_blocking_transition transition;
    void *user;
    struct aster_blocking_options options;
    struct aster_clock clock;
    struct aster_serializer_ops ops; /* its own copy: the name and the optional slot differ between users */
    pthread_mutex_t mutex;
    pthread_cond_t work;
    pthread_cond_t idle;
    struct aster_request *head;
    struct aster_request **tail;
    size_t queued;
    size_t unanswered; /* queued, running, or being answered */
    bool closed;
    unsigned started;
    pthread_t threads[];
};

static void answered(struct blocking *blocking)
{
    pthread_mutex_lock(&blocking->mutex);
    if (--blocking->unanswered == 0) {
        pthread_cond_broadcast(&blocking->idle);
    }
    pthread_mutex_unlock(&blocking->mutex);
}

static void fail(struct aster_request *request, aster_status status, const char *why)
{
    struct aster_error error;
    aster_error_set(&error, status, "%s was not run: %s", aster_operation_name(request->operation.kind), why);
    request->complete(request, status, NULL, &error);
}

static void run(struct blocking *blocking, struct aster_request *request)
{
    if (request->deadline_ns != 0 && aster_clock_now_ns(&blocking->clock) >= request->deadline_ns) {
        fail(request, ASTER_ERR_TIMEOUT, "its deadline passed in the queue; nothing was applied");
        return;
    }
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = blocking->transition(blocking->user, &request->operation, &reply, &error);
    if (status == ASTER_OK) {
        request->complete(request, ASTER_OK, &reply.decision, NULL);
    } else {
        error.status = status;
        request->complete(request, status, NULL, error.message[0] != '\0' ? &error : NULL);
    }
    aster_reply_fini(&reply);
}

static struct aster_request *pop(struct blocking *blocking)
{
    struct aster_request *request = blocking->head;
    if (request != NULL) {
        blocking->head = request->next;
        blocking->queued--;
        if (blocking->head == NULL) {
            blocking->tail = &blocking->head;
        }
    }
    return request;
}

static void *work(void *argument)
{
    struct blocking *blocking = argument;
    for (;;) {
        pthread_mutex_lock(&blocking->mutex);
        while (blocking->head == NULL && !blocking->closed) {
            pthread_cond_wait(&blocking->work, &blocking->mutex);
        }
        struct aster_request *request = pop(blocking);
        pthread_mutex_unlock(&blocking->mutex);
        if (request == NULL) {
            return NULL;
        }
        run(blocking, request);
        answered(blocking);
    }
}

static aster_status enqueue(struct blocking *blocking, struct aster_request *request, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&blocking->mutex);
    if (blocking->closed) {
        status = aster_error_set(error, ASTER_ERR_CLOSED, "the %s serializer is closed", blocking->options.name);
    } else if (blocking->queued >= blocking->options.queue_max) {
        status = aster_error_set(error, ASTER_ERR_LIMIT,
                                 "queue_max of the %s serializer is reached: %zu requests wait; retry later",
                                 blocking->options.name, blocking->options.queue_max);
    } else {
        request->next = NULL;
        *blocking->tail = request;
        blocking->tail = &request->next;
        blocking->queued++;
        blocking->unanswered++;
        pthread_cond_signal(&blocking->work);
    }
    pthread_mutex_unlock(&blocking->mutex);
    return status;
}

static void blocking_submit(void *self, struct aster_request *request)
{
    struct blocking *blocking = self;
    struct aster_error error;
    aster_status status = aster_client_operation_check(&request->operation, &blocking->options.limits, &error);
    if (status == ASTER_OK) {
        status = enqueue(blocking, request, &error);
    }
    if (status != ASTER_OK) {
        request->complete(request, status, NULL, &error);
    }
}

static void blocking_cancel(void *self, struct aster_request *request)
{
    struct blocking *blocking = self;
    bool found = false;
    pthread_mutex_lock(&blocking->mutex);
    for (struct aster_request **at = &blocking->head; *at != NULL && !found; at = found ? at : &(*at)->next) {
        if (*at != request) {
            continue;
        }
        found = true;
        *at = request->next;
        blocking->queued--;
        if (*at == NULL) {
            blocking->tail = at;
        }
    }
    pthread_mutex_unlock(&blocking->mutex);
    if (found) {
        fail(request, ASTER_ERR_CANCELLED, "it was cancelled in the queue; nothing was applied");
        answered(blocking);
    }
}

static void blocking_close(void *self)
{
    struct blocking *blocking = self;
    pthread_mutex_lock(&blocking->mutex);
    blocking->closed = true;
    struct aster_request *request = blocking->head;
    blocking->head = NULL;
    blocking->tail = &blocking->head;
    blocking->queued = 0;
    pthread_cond_broadcast(&blocking->work);
    pthread_mutex_unlock(&blocking->mutex);
    while (request != NULL) {
        struct aster_request *next = request->next;
        fail(request, ASTER_ERR_CLOSED, "the serializer was closed; nothing was applied");
        answered(blocking);
        request = next;
    }
}

static aster_status blocking_wait(void *self, int64_t timeout_ms)
{
    struct blocking *blocking = self;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * ASTER_NS_PER_MS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int code = 0;
    pthread_mutex_lock(&blocking->mutex);
    while (blocking->unanswered > 0 && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&blocking->idle, &blocking->mutex, &until);
    }
    bool done = blocking->unanswered == 0;
    pthread_mutex_unlock(&blocking->mutex);
    return done ? ASTER_OK : ASTER_ERR_TIMEOUT;
}

static void join_all(struct blocking *blocking)
{
    blocking_close(blocking);
    for (unsigned i = 0; i < blocking->started; i++) {
        pthread_join(blocking->threads[i], NULL);
    }
}

static void release_memory(struct blocking *blocking)
{
    pthread_cond_destroy(&blocking->work);
    pthread_cond_destroy(&blocking->idle);
    pthread_mutex_destroy(&blocking->mutex);
    free(blocking);
}

static void blocking_destroy(void *self)
{
    struct blocking *blocking = self;
    join_all(blocking);
    if (blocking->options.destroy != NULL) {
        blocking->options.destroy(blocking->user);
    }
    release_memory(blocking);
}

static aster_status blocking_mutate_fenced(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                           aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                           struct aster_error *error)
{
    struct blocking *blocking = self;
    return blocking->options.mutate_fenced(blocking->user, fence, writer, mutation, user, verdict, error);
}

static struct blocking *blocking_create(aster_blocking_transition transition, void *user,
                                        const struct aster_blocking_options *options)
{
    struct blocking *blocking = calloc(1, sizeof *blocking + options->threads * sizeof blocking->threads[0]);
    if (blocking == NULL) {
        return NULL;
    }
    blocking->transition = transition;
    blocking->user = user;
    blocking->options = *options;
    blocking->clock = options->clock != NULL ? *options->clock : *aster_clock_system();
    blocking->ops = (struct aster_serializer_ops){
        .struct_size = sizeof blocking->ops,
        .name = options->name,
        .submit = blocking_submit,
        .cancel = blocking_cancel,
        .close = blocking_close,
        .wait = blocking_wait,
        .destroy = blocking_destroy,
        .mutate_fenced = options->mutate_fenced != NULL ? blocking_mutate_fenced : NULL,
    };
    blocking->tail = &blocking->head;
    pthread_mutex_init(&blocking->mutex, NULL);
    pthread_cond_init(&blocking->work, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&blocking->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    return blocking;
}

static aster_status start(struct blocking *blocking, struct aster_error *error)
{
    while (blocking->started < blocking->options.threads) {
        int code = aster_thread_start(&blocking->threads[blocking->started], work, blocking);
        if (code != 0) {
            return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start thread %u of %u", blocking->started + 1,
                                      blocking->options.threads);
        }
        blocking->started++;
    }
    return ASTER_OK;
}

aster_status aster_blocking_serializer_create(aster_blocking_transition transition, void *user,
                                              const struct aster_blocking_options *options,
                                              struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_blocking_options known = ASTER_BLOCKING_OPTIONS_INIT;
    aster_status status = aster_options_read(&known, options, "ASTER_BLOCKING_OPTIONS_INIT", error);
    if (status != ASTER_OK) {
        return status;
    }
    known.name = known.name != NULL ? known.name : "app";
    known.threads = known.threads != 0 ? known.threads : 1;
    if (known.threads > THREADS_MAX || known.queue_max == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "threads is %u and queue_max %zu: give 1 to %d threads and a queue of 1 or more",
                               known.threads, known.queue_max, THREADS_MAX);
    }
    struct blocking *blocking = blocking_create(transition, user, &known);
    if (blocking == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a serializer of %u threads", known.threads);
    }
    status = start(blocking, error);
    if (status == ASTER_OK) {
        status = aster_serializer_create(&blocking->ops, blocking, known.clock, serializer, error);
    }
    if (status != ASTER_OK) {
        join_all(blocking);
        release_memory(blocking);
    }
    return status;
}
