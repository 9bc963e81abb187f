/* The public calls on a handle. */
#include "aster/lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "lease/handle.h"
#include "platform/fork.h"

#define REQUEST_TIMEOUT_DEFAULT_MS 10000

static bool is_forked(const struct aster_lease *lease)
{
    return !aster_fork_is_same(lease->generation);
}

static aster_status forked(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_FORKED,
                           "this lease belongs to the parent process: acquire one in the child after fork()");
}

static aster_status check_options(const struct aster_lease_options *options, struct aster_error *error)
{
    if (options->wait_ms < 0 || options->request_timeout_ms < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "wait is %" PRId64 " ms and request timeout %" PRId64 " ms: neither may be negative",
                               options->wait_ms, options->request_timeout_ms);
    }
    return ASTER_OK;
}

/* The serializer has the last word on the ttl's bounds, so only what no serializer takes is refused here. */
static aster_status make_plan(const struct aster_lease_options *options, struct aster_renew_plan *plan,
                              struct aster_error *error)
{
    struct aster_limits limits = ASTER_LIMITS_INIT;
    if (options->ttl_ms > 0 && options->ttl_ms <= ASTER_TTL_HARD_MAX_MS) {
        limits.ttl_min_ms = 1;
        limits.ttl_max_ms = ASTER_TTL_HARD_MAX_MS;
    }
    return aster_renew_plan_make(options->ttl_ms, options->renew_interval_ms, options->margin_ms, options->drift_ppm,
                                 &limits, plan, error);
}

static aster_status register_handle(struct aster_runtime *runtime, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    lease_runtime_lock(runtime);
    if (runtime->handles >= runtime->handles_max) {
        status = aster_error_set(error, ASTER_ERR_LIMIT, "handles_max is %zu and reached: release leases first",
                                 runtime->handles_max);
    } else if (!lease_timers_reserve(runtime, runtime->handles + 1)) {
        status =
            aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the timer of lease %zu", runtime->handles + 1);
    } else {
        runtime->handles++;
    }
    lease_runtime_unlock(runtime, NULL);
    return status;
}

static void unregister_handle(struct aster_runtime *runtime)
{
    lease_runtime_lock(runtime);
    runtime->handles--;
    lease_runtime_unlock(runtime, NULL);
}

static aster_status create(struct aster_serializer *serializer, struct aster_bytes resource, struct aster_bytes holder,
                           const struct aster_lease_options *options, struct aster_lease **lease,
                           struct aster_error *error)
{
    struct aster_renew_plan plan;
    if (serializer == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "there is no serializer (NULL): was opening it refused?");
    }
    aster_status status = aster_resource_check(resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(holder, "holder", error);
    }
    if (status == ASTER_OK) {
        status = check_options(options, error);
    }
    if (status == ASTER_OK) {
        status = make_plan(options, &plan, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_runtime *runtime = options->runtime;
    if (runtime == NULL) {
        status = lease_runtime_default(&runtime, error);
    } else if (!aster_fork_is_same(runtime->generation)) {
        status = aster_error_set(error, ASTER_ERR_FORKED,
                                 "this runtime belongs to the parent process: create one in the child after fork()");
    }
    if (status == ASTER_OK) {
        status = register_handle(runtime, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    status = lease_create(runtime, serializer, resource, holder, options, &plan, lease, error);
    if (status != ASTER_OK) {
        unregister_handle(runtime);
    }
    return status;
}

/* With `blocking` the handle has a second reference, for the caller that waits, and nobody sees it ungranted. */
static aster_status start(struct aster_serializer *serializer, struct aster_bytes resource, struct aster_bytes holder,
                          const struct aster_lease_options *options, bool blocking, struct aster_lease **lease,
                          struct aster_error *error)
{
    struct aster_lease_options known = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *made = NULL;
    aster_status status = aster_options_read(&known, options, "ASTER_LEASE_OPTIONS_INIT", error);
    if (status == ASTER_OK) {
        status = create(serializer, resource, holder, &known, &made, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    int64_t timeout_ms = known.request_timeout_ms != 0 ? known.request_timeout_ms : REQUEST_TIMEOUT_DEFAULT_MS;
    struct outbox outbox;
    outbox_init(&outbox);
    *lease = made;
    lease_runtime_lock(made->runtime);
    made->blocking = blocking;
    made->references += blocking;
    made->timeout_ns = aster_ms_to_ns(timeout_ms);
    if (known.wait_ms > 0) {
        made->wait_until_ns = aster_add_saturated(aster_clock_now_ns(made->clock), aster_ms_to_ns(known.wait_ms));
    }
    lease_acquire_begin(made, &outbox);
    lease_runtime_unlock(made->runtime, &outbox);
    return ASTER_OK;
}

aster_status aster_lease_start(struct aster_serializer *serializer, struct aster_bytes resource,
                               struct aster_bytes holder, const struct aster_lease_options *options,
                               struct aster_lease **lease, struct aster_error *error)
{
    return start(serializer, resource, holder, options, false, lease, error);
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

/* Locked; real time, also with a virtual clock. False when the time is up; `until` NULL = no bound. */
static bool wait_changed(struct aster_lease *lease, const struct timespec *until)
{
    if (until == NULL) {
        pthread_cond_wait(&lease->changed, &lease->runtime->mutex);
        return true;
    }
    return pthread_cond_timedwait(&lease->changed, &lease->runtime->mutex, until) != ETIMEDOUT;
}

/* The recorded failure, under the status that the caller gets. */
static aster_status give_failure(const struct aster_lease *lease, aster_status status, const char *what,
                                 struct aster_error *error)
{
    if (lease->last_error.status != ASTER_OK && error != NULL) {
        *error = lease->last_error;
        error->status = status;
        return status;
    }
    return aster_error_set(error, status, "%s: %s", what, aster_status_name(status));
}

/* Locked. What became of an acquire that is answered. */
static aster_status take_outcome(const struct aster_lease *lease, struct aster_reply *reply, struct aster_error *error)
{
    if (lease->status == ASTER_LEASE_NOT_GRANTED && lease->outcome == ASTER_ERR_CANCELLED) {
        return aster_error_set(error, ASTER_ERR_CANCELLED, "the acquire was cancelled");
    }
    if (lease->status == ASTER_LEASE_NOT_GRANTED && lease->outcome != ASTER_OK) {
        return give_failure(lease, lease->outcome, "the acquire failed", error);
    }
    if (reply != NULL && aster_reply_set(reply, &lease->grant.decision) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the decision");
    }
    return ASTER_OK;
}

/* Locked. A callback of another thread may destroy the handle meanwhile: the caller has a reference. */
static aster_status wait_acquired(struct aster_lease *lease, int64_t timeout_ms, struct aster_reply *reply,
                                  struct aster_error *error)
{
    struct timespec until = monotonic_after_ms(timeout_ms > 0 ? timeout_ms : 0);
    bool in_time = true;
    while (lease->status == ASTER_LEASE_ACQUIRING && in_time) {
        in_time = wait_changed(lease, timeout_ms < 0 ? NULL : &until);
    }
    if (lease->status == ASTER_LEASE_ACQUIRING) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT, "still acquiring after %" PRId64 " ms", timeout_ms);
    }
    return take_outcome(lease, reply, error);
}

aster_status aster_lease_wait_acquired(struct aster_lease *lease, int64_t timeout_ms, struct aster_reply *reply,
                                       struct aster_error *error)
{
    if (is_forked(lease)) {
        return forked(error);
    }
    struct aster_runtime *runtime = lease->runtime;
    lease_runtime_lock(runtime);
    lease->references++;
    aster_status status = wait_acquired(lease, timeout_ms, reply, error);
    lease_unref(lease);
    lease_runtime_unlock(runtime, NULL);
    return status;
}

aster_status aster_lease_acquire(struct aster_serializer *serializer, struct aster_bytes resource,
                                 struct aster_bytes holder, const struct aster_lease_options *options,
                                 struct aster_lease **lease, struct aster_reply *reply, struct aster_error *error)
{
    struct aster_lease *made = NULL;
    aster_status status = start(serializer, resource, holder, options, true, &made, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_runtime *runtime = made->runtime;
    lease_runtime_lock(runtime);
    status = wait_acquired(made, -1, reply, error);
    bool granted = made->grant.decision.outcome == ASTER_GRANTED && made->status != ASTER_LEASE_NOT_GRANTED;
    bool destroyed = made->destroyed; /* by its callback */
    lease_unref(made);
    lease_runtime_unlock(runtime, NULL);
    if (destroyed) {
        return aster_error_set(error, ASTER_ERR_CANCELLED, "the status callback destroyed the handle");
    }
    if (granted && status != ASTER_OK) {
        aster_lease_release(made, 0, NULL, NULL); /* goes on in the background */
    }
    if (!granted || status != ASTER_OK) {
        aster_lease_destroy(made);
        made = NULL;
    }
    if (status == ASTER_OK) {
        *lease = made;
    }
    return status;
}

void aster_lease_cancel(struct aster_lease *lease)
{
    if (is_forked(lease)) {
        return;
    }
    struct outbox outbox;
    outbox_init(&outbox);
    lease_runtime_lock(lease->runtime);
    if (lease->status == ASTER_LEASE_ACQUIRING) {
        lease_acquire_abandon(lease, ASTER_ERR_CANCELLED, &outbox);
    }
    lease_runtime_unlock(lease->runtime, &outbox);
}

const struct aster_fence *aster_lease_fence(const struct aster_lease *lease)
{
    int64_t limit_ns = atomic_load_explicit(&lease->fence_limit_ns, memory_order_acquire);
    if (aster_clock_now_ns(lease->clock) >= limit_ns || is_forked(lease)) {
        return NULL;
    }
    return &lease->fence;
}

void aster_lease_report_get(const struct aster_lease *lease, struct aster_lease_report *report)
{
    memset(report, 0, sizeof *report);
    if (is_forked(lease)) {
        report->status = ASTER_LEASE_LOST;
        report->reason = ASTER_LEASE_REASON_FORKED;
        return;
    }
    struct outbox outbox;
    outbox_init(&outbox);
    lease_runtime_lock(lease->runtime);
    int64_t now_ns = aster_clock_now_ns(lease->clock);
    if (lease->phase == PHASE_HOLD && now_ns >= lease->limit_ns) {
        /* Nobody hears HELD past the limit, however late the renewer is. */
        lease_renew_timer((struct aster_lease *)(uintptr_t)lease, now_ns, &outbox);
    }
    int64_t limit_ns = atomic_load_explicit(&lease->fence_limit_ns, memory_order_relaxed);
    report->status = lease->status;
    report->reason = lease->reason;
    report->epoch = lease->fence.epoch;
    report->remaining_ns = limit_ns > now_ns ? limit_ns - now_ns : 0;
    report->limit_ns = lease->limit_ns;
    report->renewals = lease->renewals;
    report->renew_errors = lease->renew_errors;
    report->last_error = lease->last_error;
    lease_runtime_unlock(lease->runtime, &outbox);
}

aster_status aster_lease_grant(const struct aster_lease *lease, struct aster_reply *reply, struct aster_error *error)
{
    if (is_forked(lease)) {
        return forked(error);
    }
    lease_runtime_lock(lease->runtime);
    aster_status status = ASTER_OK;
    if (lease->grant.decision.outcome != ASTER_GRANTED) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "nothing was granted yet: wait for HELD first");
    } else if (aster_reply_set(reply, &lease->grant.decision) != ASTER_OK) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the grant");
    }
    lease_runtime_unlock(lease->runtime, NULL);
    return status;
}

int aster_lease_fd(struct aster_lease *lease)
{
    if (is_forked(lease)) {
        return ASTER_ERR_FORKED;
    }
    lease_runtime_lock(lease->runtime);
    if (lease->event_fd < 0) {
        lease->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        bool over = lease->status != ASTER_LEASE_ACQUIRING && lease->status != ASTER_LEASE_HELD;
        if (lease->event_fd >= 0 && over) {
            eventfd_write(lease->event_fd, 1);
        }
    }
    int fd = lease->event_fd >= 0 ? lease->event_fd : ASTER_ERR_IO;
    lease_runtime_unlock(lease->runtime, NULL);
    return fd;
}

void aster_lease_quiesce(struct aster_lease *lease)
{
    if (is_forked(lease)) {
        return;
    }
    lease_runtime_lock(lease->runtime);
    if (lease->status == ASTER_LEASE_HELD) {
        lease->quiesced = true;
        lease_supply(lease);
    }
    lease_runtime_unlock(lease->runtime, NULL);
}

/* Locked. False when there is nothing to release: it ended definitively, or was never granted. */
static bool begin_release(struct aster_lease *lease, struct outbox *outbox)
{
    if (lease->phase == PHASE_RELEASE) {
        return lease->status != ASTER_LEASE_NOT_GRANTED;
    }
    if (lease->status == ASTER_LEASE_ACQUIRING) {
        lease_acquire_abandon(lease, ASTER_ERR_CANCELLED, outbox);
        return false;
    }
    bool lost = lease->status == ASTER_LEASE_LOST && !lease->release_answered;
    if (lease->status != ASTER_LEASE_HELD && !lost) {
        return false;
    }
    lease_release_begin(lease, outbox);
    return true;
}

static aster_status finish_release(struct aster_lease *lease, int64_t timeout_ms, struct aster_reply *reply,
                                   struct aster_error *error)
{
    struct timespec until = monotonic_after_ms(timeout_ms);
    bool in_time = true;
    while (!lease->release_answered && in_time) {
        in_time = wait_changed(lease, &until);
    }
    if (!lease->release_answered) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT,
                               "the release was not confirmed within %" PRId64
                               " ms; it is retried in the background, and the lease lapses at its ttl at the latest",
                               timeout_ms);
    }
    if (lease->outcome != ASTER_OK) {
        return give_failure(lease, lease->outcome, "the release failed", error);
    }
    if (reply != NULL && aster_reply_set(reply, &lease->release_reply.decision) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "released; out of memory for the decision");
    }
    return ASTER_OK;
}

aster_status aster_lease_release(struct aster_lease *lease, int64_t timeout_ms, struct aster_reply *reply,
                                 struct aster_error *error)
{
    if (lease == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "there is no lease (NULL): was it granted?");
    }
    if (is_forked(lease)) {
        return forked(error);
    }
    struct outbox outbox;
    outbox_init(&outbox);
    struct aster_runtime *runtime = lease->runtime;
    lease_runtime_lock(runtime);
    bool wait = begin_release(lease, &outbox);
    lease->references++; /* a callback of another thread may destroy the handle while this one waits */
    lease_runtime_unlock(runtime, &outbox);
    lease_runtime_lock(runtime);
    aster_status status = wait ? finish_release(lease, timeout_ms > 0 ? timeout_ms : 0, reply, error) : ASTER_OK;
    lease_unref(lease);
    lease_runtime_unlock(runtime, NULL);
    return status;
}

/* Locked. */
static void drop(struct aster_lease *lease, struct outbox *outbox)
{
    if (lease->status == ASTER_LEASE_ACQUIRING) {
        lease_acquire_abandon(lease, ASTER_ERR_CANCELLED, outbox);
    } else if (lease->phase == PHASE_HOLD) {
        lease_request_give_back(&lease->main, outbox);
        lease_end(lease, ASTER_LEASE_RELEASED, ASTER_LEASE_REASON_CLOSED);
    } else if (lease->phase == PHASE_RELEASE && lease->status == ASTER_LEASE_RELEASE_PENDING) {
        lease_request_give_back(&lease->release, outbox);
        lease->release_answered = true;
        lease_end(lease, ASTER_LEASE_RELEASED, ASTER_LEASE_REASON_CLOSED);
    }
}

void aster_lease_drop(struct aster_lease *lease)
{
    if (is_forked(lease)) {
        return;
    }
    struct outbox outbox;
    outbox_init(&outbox);
    lease_runtime_lock(lease->runtime);
    drop(lease, &outbox);
    lease_runtime_unlock(lease->runtime, &outbox);
}

void aster_lease_destroy(struct aster_lease *lease)
{
    if (lease == NULL) {
        return;
    }
    if (is_forked(lease)) {
        free(lease); /* its serializer, threads and descriptors are the parent's */
        return;
    }
    struct aster_runtime *runtime = lease->runtime;
    struct outbox outbox;
    outbox_init(&outbox);
    lease_runtime_lock(runtime);
    lease_dispatcher_forget(lease);
    if (!(lease->phase == PHASE_RELEASE)) {
        drop(lease, &outbox); /* a release under way goes on: it can only free the row sooner */
    }
    lease_unref(lease);
    lease_runtime_unlock(runtime, &outbox);
}
