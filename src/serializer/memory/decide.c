/* Ordering one operation: under the stripe's lock the clock is read, the table decides, the history is written and the
 * answer is copied out; then the lock is dropped and everyone is told. */
#include "base/checked.h"
#include "base/error.h"
#include "engine/client_operation.h"
#include "serializer/memory/internal.h"

int64_t aster_memory_since_unix_ms(const struct memory *memory, int64_t since_ns, int64_t now_ns)
{
    if (since_ns == ASTER_TABLE_SINCE_UNKNOWN) {
        return 0;
    }
    return aster_clock_unix_ms(&memory->clock) - (now_ns - since_ns) / ASTER_NS_PER_MS;
}

void aster_memory_learn_floor(struct memory *memory, struct memory_stripe *stripe)
{
    aster_table_raise_floor(stripe->table, atomic_load(&memory->floor));
}

static enum aster_event_kind event_of(const struct aster_decision *decision)
{
    switch (decision->kind) {
    case ASTER_OP_ACQUIRE:
        return decision->takeover ? ASTER_EVENT_TAKEOVER : ASTER_EVENT_GRANTED;
    case ASTER_OP_RELEASE:
        return ASTER_EVENT_RELEASED;
    case ASTER_OP_REVOKE:
        return ASTER_EVENT_REVOKED;
    case ASTER_OP_FORGET:
        return ASTER_EVENT_FORGOTTEN;
    default:
        return (enum aster_event_kind)0; /* renewals and puts are no events */
    }
}

static bool is_fence_rejection(const struct aster_decision *decision)
{
    return decision->kind == ASTER_OP_PUT && decision->outcome == ASTER_DENIED &&
           decision->reason != ASTER_REASON_REVISION_MISMATCH;
}

/* What the history says of it; kind 0 = nothing. */
static struct aster_event describe(const struct memory *memory, const struct aster_operation *operation,
                                   const struct aster_effect *effect)
{
    const struct aster_decision *decision = &effect->decision;
    bool applied = (effect->changed || effect->removed) && !decision->replayed;
    struct aster_event event = {0};
    if (is_fence_rejection(decision)) {
        event.kind = ASTER_EVENT_FENCE_REJECTED;
        event.reason = decision->reason;
        event.carried_epoch = operation->epoch;
    } else if (applied) {
        event.kind = event_of(decision);
    }
    if (event.kind == 0) {
        return event;
    }
    event.unix_ms = aster_clock_unix_ms(&memory->clock);
    event.resource = operation->resource;
    event.actor = operation->caller;
    event.epoch = decision->epoch;
    bool ended_a_lease = effect->row.last_epoch_held == effect->row.epoch - 1 && effect->row.last_epoch_held > 0;
    if ((event.kind == ASTER_EVENT_TAKEOVER || event.kind == ASTER_EVENT_REVOKED) && ended_a_lease) {
        event.previous = effect->row.last_holder;
    }
    return event;
}

/* A refusal changes nothing: its answer need not wait for its line in the history. */
static void note(struct memory *memory, struct memory_stripe *stripe, const struct aster_event *event)
{
    if (memory_commits(memory)) {
        aster_memory_commit_event(memory, stripe, event);
    } else {
        aster_memory_history_add(&memory->history, event);
    }
}

/* resources_max counts the rows of all stripes, so a place is taken before the row can be made. */
static aster_status reserve_row(struct memory *memory, const struct memory_stripe *stripe, struct aster_bytes resource,
                                struct aster_error *error)
{
    size_t rows = atomic_fetch_add(&memory->rows, 1);
    if (rows < memory->limits.resources_max || aster_table_has(stripe->table, resource)) {
        return ASTER_OK;
    }
    atomic_fetch_sub(&memory->rows, 1);
    return aster_error_set(error, ASTER_ERR_LIMIT,
                           "resources_max is %zu and reached: forget free resources or raise the limit",
                           memory->limits.resources_max);
}

/* Apply to the table and keep the count of rows. */
static aster_status apply(struct memory *memory, struct memory_stripe *stripe, const struct aster_operation *operation,
                          int64_t now_ns, struct aster_table_result *result, struct aster_table_image *image,
                          struct aster_error *error)
{
    aster_memory_learn_floor(memory, stripe);
    bool may_create = operation->kind == ASTER_OP_ACQUIRE || operation->kind == ASTER_OP_REVOKE;
    aster_status status = may_create ? reserve_row(memory, stripe, operation->resource, error) : ASTER_OK;
    if (status != ASTER_OK) {
        return status;
    }
    size_t before = aster_table_usage_get(stripe->table).rows;
    status = memory_commits(memory) ? aster_table_apply_imaged(stripe->table, operation, now_ns, result, image, error)
                                    : aster_table_apply(stripe->table, operation, now_ns, result, error);
    size_t after = aster_table_usage_get(stripe->table).rows;
    if ((may_create && after == before) || after < before) {
        atomic_fetch_sub(&memory->rows, 1);
    }
    if (status == ASTER_OK) {
        result->effect.decision.snapshot.since_unix_ms = aster_memory_since_unix_ms(memory, result->since_ns, now_ns);
    }
    return status;
}

aster_status aster_memory_apply(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                struct aster_request *request, int64_t now_ns, struct aster_table_result *result,
                                bool *held, struct aster_error *error)
{
    const struct aster_operation *operation = &request->operation;
    struct aster_table_image image = {.kind = ASTER_IMAGE_NONE};
    aster_status status = apply(memory, stripe, operation, now_ns, result, &image, error);
    if (status != ASTER_OK) {
        return status;
    }
    const struct aster_event event = describe(memory, operation, &result->effect);
    if (image.kind != ASTER_IMAGE_NONE) {
        status = aster_memory_commit(memory, stripe, hash, request, result, &event, &image, error);
        *held = status == ASTER_OK;
    } else if (event.kind != 0) {
        note(memory, stripe, &event);
    }
    if (status == ASTER_OK && result->effect.removed) { /* after the change was handed over: see aster_memory_hold() */
        aster_memory_raise(&memory->floor, aster_table_floor(stripe->table));
    }
    return status;
}

/* No epoch is used up and the row is not shown: only its epoch, which the caller could count up to by itself. */
aster_status aster_memory_deny_unauthorized(struct memory *memory, struct memory_stripe *stripe,
                                            const struct aster_operation *operation, int64_t now_ns,
                                            struct aster_reply *reply, struct aster_error *error)
{
    struct aster_operation look = ASTER_OPERATION_INIT;
    look.kind = ASTER_OP_INSPECT;
    look.resource = operation->resource;
    struct aster_table_result result;
    aster_status status = apply(memory, stripe, &look, now_ns, &result, &(struct aster_table_image){0}, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_decision denied = {.struct_size = sizeof denied,
                                    .kind = operation->kind,
                                    .outcome = ASTER_DENIED,
                                    .reason = ASTER_REASON_UNAUTHORIZED,
                                    .epoch = result.effect.row.epoch,
                                    .carried_epoch = operation->epoch};
    denied.snapshot.resource = operation->resource;
    denied.snapshot.epoch = result.effect.row.epoch;
    const struct aster_event event = {.unix_ms = aster_clock_unix_ms(&memory->clock),
                                      .kind = ASTER_EVENT_UNAUTHORIZED,
                                      .reason = ASTER_REASON_UNAUTHORIZED,
                                      .resource = operation->resource,
                                      .actor = operation->caller,
                                      .epoch = denied.epoch,
                                      .carried_epoch = operation->epoch};
    note(memory, stripe, &event);
    status = aster_reply_set(reply, &denied);
    return status == ASTER_OK ? ASTER_OK : aster_error_set(error, status, "no memory for an answer");
}

static aster_status check_open(const struct memory_stripe *stripe, const struct aster_request *request, int64_t now_ns,
                               struct aster_error *error)
{
    if (stripe->closed) {
        return aster_error_set(error, ASTER_ERR_CLOSED, "the memory serializer is closed");
    }
    if (request->deadline_ns != 0 && now_ns >= request->deadline_ns) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT,
                               "the deadline of this %s has passed: nothing was applied; try again with more time",
                               aster_operation_name(request->operation.kind));
    }
    return ASTER_OK;
}

struct ordering {
    struct memory *memory;
    struct memory_stripe *stripe;
    uint64_t hash;
    struct aster_request *request;
    bool allowed;
    bool queued; /* out: it waits in line, or for the committer, and is not to be answered now */
    struct aster_reply reply;
    struct memory_outbox outbox;
};

/* Let an answer wait that tells of what is not durable yet. The request may be gone on return. */
static aster_status hold_back(struct ordering *ordering, struct aster_error *error)
{
    if (ordering->queued || !memory_commits(ordering->memory)) {
        return ASTER_OK;
    }
    return aster_memory_hold(ordering->memory, ordering->stripe, ordering->hash, ordering->request, &ordering->reply,
                             &ordering->queued, error);
}

static aster_status decide(struct ordering *ordering, int64_t now_ns, struct aster_error *error)
{
    struct memory *memory = ordering->memory;
    const struct aster_operation *operation = &ordering->request->operation;
    struct memory_queue *queue = aster_memory_queue_find(ordering->stripe, ordering->hash, operation->resource);
    if (queue != NULL && operation->kind == ASTER_OP_ACQUIRE) {
        /* The lease may have expired a moment ago: those who wait come before a newcomer. */
        aster_memory_queue_serve(memory, ordering->stripe, queue, now_ns, &ordering->outbox);
    }
    struct aster_table_result result;
    aster_status status = aster_memory_apply(memory, ordering->stripe, ordering->hash, ordering->request, now_ns,
                                             &result, &ordering->queued, error);
    if (status != ASTER_OK) {
        return status;
    }
    const struct aster_decision *decision = &result.effect.decision;
    bool waits = operation->kind == ASTER_OP_ACQUIRE && decision->reason == ASTER_REASON_HELD_BY_OTHER &&
                 ordering->request->wait_until_ns > now_ns;
    if (waits) {
        status = aster_memory_wait_in_line(memory, ordering->stripe, ordering->hash, ordering->request, error);
        ordering->queued = status == ASTER_OK;
        return status;
    }
    if (!ordering->queued && aster_reply_set(&ordering->reply, decision) != ASTER_OK) {
        status = aster_error_set(error, result.effect.changed ? ASTER_ERR_INDETERMINATE : ASTER_ERR_NOMEM,
                                 "no memory for the answer to %s: repeat it under the same id",
                                 aster_operation_name(operation->kind));
    }
    bool freed = result.effect.changed && !result.effect.row.held;
    if (status == ASTER_OK) {
        status = hold_back(ordering, error); /* before a waiter's grant, which comes after it */
    }
    if (freed && queue != NULL) {
        aster_memory_queue_serve(memory, ordering->stripe, queue, now_ns, &ordering->outbox);
    }
    return status;
}

/* When the alarm must go off for what this ordering left behind; read while the lock is held. */
static int64_t first_timer_ns(const struct memory_stripe *stripe)
{
    const struct memory_timer *first = aster_memory_timers_first(&stripe->timers);
    return first != NULL ? first->at_ns : INT64_MAX;
}

static aster_status order(struct ordering *ordering, int64_t *alarm_ns, struct aster_error *error)
{
    struct memory_stripe *stripe = ordering->stripe;
    int64_t now_ns = aster_clock_now_ns(&ordering->memory->clock);
    aster_status status = check_open(stripe, ordering->request, now_ns, error);
    if (status == ASTER_OK && !ordering->allowed) {
        status = aster_memory_deny_unauthorized(ordering->memory, stripe, &ordering->request->operation, now_ns,
                                                &ordering->reply, error);
        status = status == ASTER_OK ? hold_back(ordering, error) : status;
    } else if (status == ASTER_OK) {
        status = decide(ordering, now_ns, error);
    }
    *alarm_ns = first_timer_ns(stripe);
    return status;
}

void aster_memory_order(struct memory *memory, struct memory_stripe *stripe, struct aster_request *request)
{
    struct ordering ordering = {
        .memory = memory, .stripe = stripe, .request = request, .allowed = true, .reply = ASTER_REPLY_INIT};
    memcpy(&ordering.hash, request->slot, sizeof ordering.hash);
    aster_memory_outbox_init(&ordering.outbox);
    if (memory->authorize != NULL) {
        ordering.allowed = memory->authorize(&request->operation, memory->authorize_user);
    }
    struct aster_error error;
    int64_t alarm_ns = INT64_MAX;
    aster_status status = order(&ordering, &alarm_ns, &error);
    bool queued = ordering.queued;
    pthread_mutex_unlock(&stripe->mutex);
    if (alarm_ns != INT64_MAX) {
        aster_memory_alarm_set(memory, alarm_ns);
    }
    aster_memory_outbox_send(stripe, &ordering.outbox);
    if (!queued) {
        request->complete(request, status, status == ASTER_OK ? &ordering.reply.decision : NULL,
                          status == ASTER_OK ? NULL : &error);
        aster_reply_fini(&ordering.reply);
        atomic_fetch_sub(&stripe->unanswered, 1);
    }
}

void aster_memory_submit(void *self, struct aster_request *request)
{
    struct memory *memory = self;
    const struct aster_operation *operation = &request->operation;
    struct aster_error error;
    aster_status status = aster_client_operation_check(operation, &memory->limits, &error);
    if (status != ASTER_OK) {
        request->complete(request, status, NULL, &error);
        return;
    }
    uint64_t hash = aster_siphash(&memory->key, operation->resource);
    struct memory_stripe *stripe = memory_stripe_of(memory, hash);
    memcpy(request->slot, &hash, sizeof hash);
    atomic_fetch_add(&stripe->unanswered, 1);
    aster_memory_stripe_leave_request(memory, stripe, request);
}
