/* Decisions on their way to be durable, and back when they cannot be. */
#include "serializer/memory/commit.h"

#include <stdlib.h>

#include "base/error.h"
#include "serializer/memory/internal.h"

#define RETRY_NS INT64_C(100000000) /* after an undo: before waiters are granted what could not be made durable */

void aster_memory_raise(_Atomic(int64_t) *floor, int64_t to)
{
    int64_t known = atomic_load(floor);
    while (known < to && !atomic_compare_exchange_weak(floor, &known, to)) {
    }
}

static char *copy_in(struct aster_bytes *bytes, char *to)
{
    if (bytes->size > 0) {
        memcpy(to, bytes->data, bytes->size);
    }
    bytes->data = to;
    return to + bytes->size;
}

static struct memory_change *change_create(struct memory_stripe *stripe, struct aster_request *request,
                                           const struct aster_event *event)
{
    size_t size = event == NULL ? 0 : event->resource.size + event->actor.size + event->previous.size;
    struct memory_change *change = malloc(sizeof *change + size);
    if (change != NULL) {
        *change = (struct memory_change){
            .waited = stripe->serving, .stripe = stripe, .request = request, .reply = ASTER_REPLY_INIT};
        if (event != NULL) {
            change->event = *event;
            char *at = copy_in(&change->event.resource, change->bytes);
            at = copy_in(&change->event.actor, at);
            copy_in(&change->event.previous, at);
        }
    }
    return change;
}

void aster_memory_change_destroy(struct memory_change *change)
{
    aster_reply_fini(&change->reply);
    free(change);
}

static void count_row(struct memory *memory, const struct aster_table_image *image)
{
    if (image->kind == ASTER_IMAGE_CREATED) {
        atomic_fetch_sub(&memory->rows, 1);
    } else if (image->kind == ASTER_IMAGE_REMOVED) {
        atomic_fetch_add(&memory->rows, 1);
    }
}

static bool keeps_value(const struct aster_operation *operation, const struct aster_row *row)
{
    return operation->kind != ASTER_OP_PUT && (operation->flags & ASTER_OP_WITH_VALUE) == 0 && row->value.size > 0;
}

aster_status aster_memory_commit(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                 struct aster_request *request, const struct aster_table_result *result,
                                 const struct aster_event *event, struct aster_table_image *image,
                                 struct aster_error *error)
{
    const struct aster_effect *effect = &result->effect;
    struct memory_change *change = change_create(stripe, request, event->kind != 0 ? event : NULL);
    aster_status status = ASTER_ERR_NOMEM;
    if (change != NULL && aster_reply_set(&change->reply, &effect->decision) == ASTER_OK &&
        aster_memory_links_reserve(&stripe->changes)) {
        change->image = *image;
        change->floor = aster_table_floor(stripe->table);
        status = memory->committer.take(memory->committer.self, change, effect->removed ? NULL : &effect->row,
                                        keeps_value(&request->operation, &effect->row), error);
    } else {
        aster_error_set(error, status, "no memory to make %s durable: nothing was applied",
                        aster_operation_name(request->operation.kind));
    }
    if (status == ASTER_OK) {
        aster_memory_links_insert(&stripe->changes, &change->link, hash);
        return ASTER_OK;
    }
    count_row(memory, image);
    aster_table_restore(stripe->table, request->operation.resource, image);
    aster_table_reset_floor(stripe->table, atomic_load(&memory->floor));
    if (change != NULL) {
        aster_memory_change_destroy(change);
    }
    return status;
}

static bool is_changing(const struct memory_stripe *stripe, uint64_t hash)
{
    const struct memory_link *link = aster_memory_links_chain(&stripe->changes, hash);
    while (link != NULL && link->hash != hash) { /* two names of one hash only make one wait for the other */
        link = link->next;
    }
    return link != NULL;
}

/* The epoch of a row that does not exist is the floor, which another stripe may have raised: it is seen here, because
 * it is raised after the change that does so was handed over. */
static bool shows_floor(const struct memory *memory, const struct memory_stripe *stripe, struct aster_bytes resource)
{
    return atomic_load(&memory->floor) != atomic_load(&memory->durable_floor) &&
           !aster_table_has(stripe->table, resource);
}

static bool is_unsure(const struct memory *memory, const struct memory_stripe *stripe, uint64_t hash,
                      struct aster_bytes resource)
{
    return is_changing(stripe, hash) || shows_floor(memory, stripe, resource);
}

void aster_memory_commit_event(struct memory *memory, struct memory_stripe *stripe, const struct aster_event *event)
{
    struct memory_change *change = change_create(stripe, NULL, event);
    if (change == NULL) {
        return;
    }
    change->on_top = is_unsure(memory, stripe, aster_siphash(&memory->key, event->resource), event->resource);
    if (memory->committer.take(memory->committer.self, change, NULL, false, NULL) != ASTER_OK) {
        aster_memory_change_destroy(change);
    }
}

aster_status aster_memory_hold(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                               struct aster_request *request, struct aster_reply *reply, bool *held,
                               struct aster_error *error)
{
    if (!is_unsure(memory, stripe, hash, request->operation.resource)) {
        return ASTER_OK;
    }
    struct memory_change *change = change_create(stripe, request, NULL);
    aster_status status = ASTER_ERR_NOMEM;
    if (change != NULL) {
        change->reply = *reply;
        status = memory->committer.take(memory->committer.self, change, NULL, false, error);
    }
    if (status == ASTER_OK) {
        *reply = (struct aster_reply)ASTER_REPLY_INIT;
        *held = true;
        return ASTER_OK;
    }
    free(change);
    return aster_error_set(error, ASTER_ERR_INDETERMINATE, "no memory to hold the answer to %s back: repeat it",
                           aster_operation_name(request->operation.kind));
}

void aster_memory_durable(struct memory *memory, struct memory_change *change)
{
    if (memory_change_has_row(change)) {
        bool removed = change->image.kind == ASTER_IMAGE_REMOVED;
        aster_memory_stripe_lock(change->stripe);
        aster_memory_links_remove(&change->stripe->changes, &change->link);
        aster_table_image_drop(change->stripe->table, &change->image);
        aster_memory_stripe_unlock(memory, change->stripe);
        if (removed) {
            aster_memory_raise(&memory->durable_floor, change->floor);
        }
    }
    if (change->event.kind != 0) {
        aster_memory_history_restore(&memory->history, &change->event);
    }
}

void aster_memory_answer(struct memory_change *change)
{
    if (change->request != NULL) {
        struct memory_stripe *stripe = change->stripe;
        change->request->complete(change->request, ASTER_OK, &change->reply.decision, NULL);
        atomic_fetch_sub(&stripe->unanswered, 1);
    }
    aster_memory_change_destroy(change);
}

void aster_memory_freeze(struct memory *memory)
{
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        aster_memory_stripe_lock(&memory->stripes[i]);
    }
}

void aster_memory_count_undone(struct memory *memory)
{
    atomic_fetch_add(&memory->undone, 1);
}

void aster_memory_undo(struct memory *memory, struct memory_change *change)
{
    if (!memory_change_has_row(change)) {
        return;
    }
    struct memory_stripe *stripe = change->stripe;
    struct aster_bytes resource = change->request->operation.resource;
    aster_memory_links_remove(&stripe->changes, &change->link);
    count_row(memory, &change->image);
    aster_table_restore(stripe->table, resource, &change->image);
    struct memory_queue *queue = aster_memory_queue_find(stripe, change->link.hash, resource);
    if (queue != NULL) { /* it looks again then, whatever the row has become */
        aster_memory_timers_set(&stripe->timers, &queue->timer, aster_clock_now_ns(&memory->clock) + RETRY_NS);
    }
}

void aster_memory_redo(struct memory *memory, struct memory_change *change)
{
    struct memory_stripe *stripe = change->stripe;
    int64_t again_ns = aster_clock_now_ns(&memory->clock) + RETRY_NS;
    if (!change->waited || atomic_load(&stripe->closed) || /* whose line was answered already */
        !aster_memory_wait_first(memory, stripe, change->link.hash, change->request, again_ns)) {
        change->request->next = stripe->inbox;
        stripe->inbox = change->request;
        atomic_fetch_add(&stripe->work, 1);
    }
    aster_memory_change_destroy(change);
}

void aster_memory_thaw(struct memory *memory)
{
    int64_t floor = atomic_load(&memory->durable_floor);
    int64_t alarm_ns = INT64_MAX;
    atomic_store(&memory->floor, floor);
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        const struct memory_timer *first = aster_memory_timers_first(&stripe->timers);
        aster_table_reset_floor(stripe->table, floor);
        alarm_ns = first != NULL && first->at_ns < alarm_ns ? first->at_ns : alarm_ns;
    }
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        aster_memory_stripe_unlock(memory, &memory->stripes[i]);
    }
    if (alarm_ns != INT64_MAX) {
        aster_memory_alarm_set(memory, alarm_ns);
    }
}

void aster_memory_refuse(struct memory_change *change, aster_status status, const struct aster_error *error)
{
    struct memory_stripe *stripe = change->stripe;
    change->request->complete(change->request, status, NULL, error);
    atomic_fetch_sub(&stripe->unanswered, 1);
    aster_memory_change_destroy(change);
}

aster_status aster_memory_load_row(struct memory *memory, struct aster_bytes resource, const struct aster_row *row,
                                   struct aster_error *error)
{
    struct memory_stripe *stripe = memory_stripe_of(memory, aster_siphash(&memory->key, resource));
    aster_status status = aster_table_load(stripe->table, resource, row, aster_clock_now_ns(&memory->clock), error);
    if (status == ASTER_OK) {
        atomic_fetch_add(&memory->rows, 1);
    }
    return status;
}

void aster_memory_load_floor(struct memory *memory, int64_t floor)
{
    atomic_store(&memory->floor, floor);
    atomic_store(&memory->durable_floor, floor);
}

void aster_memory_load_event(struct memory *memory, const struct aster_event *event)
{
    aster_memory_history_restore(&memory->history, event);
}
