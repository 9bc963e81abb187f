/* Blocking calls over submit(). The request lives on the heap with copies of all its bytes, because a serializer may
 * answer after the caller has given up and gone. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "aster/sys/serializer.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "platform/entropy.h"

#define TIMEOUT_DEFAULT_MS 30000
/* After the deadline, how long to wait for the serializer to say whether the operation was applied. */
#define VERDICT_GRACE_MS 250

struct call {
    struct aster_request request;
    pthread_mutex_t mutex;
    pthread_cond_t answered_changed;
    _Atomic(int) references; /* the caller's and the serializer's */
    bool answered;
    aster_status status;
    struct aster_reply reply;
    struct aster_error error;
    char bytes[];
};

static void call_unref(struct call *call)
{
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) == 1) {
        pthread_cond_destroy(&call->answered_changed);
        pthread_mutex_destroy(&call->mutex);
        aster_reply_fini(&call->reply);
        free(call);
    }
}

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct call *call = request->user;
    if (status == ASTER_OK && aster_reply_set(&call->reply, decision) != ASTER_OK) {
        /* Not NOMEM: that would promise that nothing was applied. */
        status = aster_error_set(&call->error, ASTER_ERR_INDETERMINATE,
                                 "%s was decided, but there is no memory for the answer: repeat it under the same id",
                                 aster_operation_name(request->operation.kind));
    } else if (status != ASTER_OK && error != NULL) {
        call->error = *error;
    } else if (status != ASTER_OK) {
        aster_error_set(&call->error, status, "%s failed: %s", aster_operation_name(request->operation.kind),
                        aster_status_name(status));
    }
    pthread_mutex_lock(&call->mutex);
    call->status = status;
    call->answered = true;
    pthread_cond_signal(&call->answered_changed);
    pthread_mutex_unlock(&call->mutex);
    call_unref(call);
}

static char *keep(struct aster_bytes *bytes, char *to)
{
    if (bytes->size > 0) {
        memcpy(to, bytes->data, bytes->size);
        bytes->data = to;
    }
    return to + bytes->size;
}

static struct call *call_create(const struct aster_operation *operation)
{
    size_t size = operation->resource.size + operation->caller.size + operation->value.size + operation->holder.size;
    struct call *call = malloc(sizeof *call + size);
    if (call == NULL) {
        return NULL;
    }
    call->request = (struct aster_request)ASTER_REQUEST_INIT;
    call->request.operation = *operation;
    call->request.complete = complete;
    call->request.user = call;
    char *at = keep(&call->request.operation.resource, call->bytes);
    at = keep(&call->request.operation.caller, at);
    at = keep(&call->request.operation.value, at);
    keep(&call->request.operation.holder, at);
    pthread_mutex_init(&call->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    /* CLOCK_BOOTTIME is not to be had here: a suspended machine waits the rest of the timeout after it wakes up. */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&call->answered_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_init(&call->references, 2);
    call->answered = false;
    call->status = ASTER_ERR_INDETERMINATE;
    call->reply = (struct aster_reply)ASTER_REPLY_INIT;
    return call;
}

static struct timespec monotonic_after_ms(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t ns = at.tv_nsec + ms % 1000 * ASTER_NS_PER_MS;
    at.tv_sec = aster_add_saturated(at.tv_sec, ms / 1000 + ns / 1000000000);
    at.tv_nsec = ns % 1000000000;
    return at;
}

static bool wait_answered(struct call *call, int64_t ms)
{
    const struct timespec until = monotonic_after_ms(ms);
    pthread_mutex_lock(&call->mutex);
    int code = 0;
    while (!call->answered && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&call->answered_changed, &call->mutex, &until);
    }
    bool answered = call->answered;
    pthread_mutex_unlock(&call->mutex);
    return answered;
}

static aster_status take_answer(struct call *call, bool gave_up, int64_t timeout_ms, struct aster_reply *reply,
                                struct aster_error *error)
{
    if (gave_up && call->status == ASTER_ERR_CANCELLED) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT,
                               "%s was not decided within %" PRId64 " ms and was withdrawn: nothing was applied",
                               aster_operation_name(call->request.operation.kind), timeout_ms);
    }
    if (call->status != ASTER_OK) {
        if (error != NULL) {
            *error = call->error;
            error->status = call->status;
        }
        return call->status;
    }
    aster_reply_fini(reply);
    *reply = call->reply;
    call->reply = (struct aster_reply)ASTER_REPLY_INIT;
    return ASTER_OK;
}

static aster_status run(struct aster_serializer *serializer, struct call *call, int64_t timeout_ms,
                        struct aster_reply *reply, struct aster_error *error)
{
    const struct aster_clock *clock = aster_serializer_clock(serializer);
    call->request.deadline_ns = aster_add_saturated(aster_clock_now_ns(clock), aster_ms_to_ns(timeout_ms));
    aster_serializer_submit(serializer, &call->request);
    bool answered = wait_answered(call, timeout_ms);
    bool gave_up = !answered;
    if (gave_up) {
        aster_serializer_cancel(serializer, &call->request);
        answered = wait_answered(call, VERDICT_GRACE_MS);
    }
    if (answered) {
        return take_answer(call, gave_up, timeout_ms, reply, error);
    }
    return aster_error_set(error, ASTER_ERR_INDETERMINATE,
                           "%s was not answered within %" PRId64
                           " ms and may still be applied: repeat the same operation under the same id",
                           aster_operation_name(call->request.operation.kind), timeout_ms);
}

static aster_status fill_request_id(struct aster_operation *operation, struct aster_error *error)
{
    static const unsigned char none[ASTER_REQUEST_ID_SIZE];
    bool mutates = operation->kind != ASTER_OP_INSPECT && operation->kind != ASTER_OP_EXPIRE;
    if (!mutates || memcmp(operation->request_id, none, sizeof none) != 0) {
        return ASTER_OK;
    }
    return aster_entropy_fill(operation->request_id, sizeof operation->request_id, error);
}

/* Sizes must be sound before they are copied. The ttl is left to the serializer, whose message names its own bounds. */
static aster_status check_shape(const struct aster_operation *operation, struct aster_error *error)
{
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_operation shape = *operation;
    shape.ttl_ms = limits.ttl_min_ms;
    return aster_operation_check(&shape, &limits, error);
}

aster_status aster_serializer_call(struct aster_serializer *serializer, const struct aster_operation *operation,
                                   int64_t timeout_ms, struct aster_reply *reply, struct aster_error *error)
{
    if (serializer == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "there is no serializer (NULL): was opening it refused?");
    }
    if (timeout_ms < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "timeout is %" PRId64 " ms: give 0 for the default of %d ms, or more", timeout_ms,
                               TIMEOUT_DEFAULT_MS);
    }
    struct aster_operation known = ASTER_OPERATION_INIT;
    aster_status status = aster_options_read(&known, operation, "ASTER_OPERATION_INIT", error);
    if (status == ASTER_OK) {
        status = check_shape(&known, error);
    }
    if (status == ASTER_OK) {
        status = fill_request_id(&known, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    struct call *call = call_create(&known);
    if (call == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a request");
    }
    status = run(serializer, call, timeout_ms == 0 ? TIMEOUT_DEFAULT_MS : timeout_ms, reply, error);
    call_unref(call);
    return status;
}
