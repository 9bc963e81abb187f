/* Those who wait: one queue per resource, first in, first out. A place in the queue is no promise: the grant is decided
 * when its turn comes, at that instant's time and with a full ttl, and whoever has given up by then is skipped. */
#include <stdlib.h>

#include "base/error.h"
#include "serializer/memory/internal.h"

#define OWNER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static struct aster_bytes name_of(const struct memory_queue *queue)
{
    return (struct aster_bytes){queue->name, queue->name_size};
}

static uint64_t hash_of_request(const struct aster_request *request)
{
    return ((uint64_t)(uintptr_t)request >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

struct memory_queue *aster_memory_queue_find(struct memory_stripe *stripe, uint64_t hash, struct aster_bytes resource)
{
    struct memory_link *link = aster_memory_links_chain(&stripe->queues, hash);
    for (; link != NULL; link = link->next) {
        struct memory_queue *queue = OWNER(link, struct memory_queue, link);
        if (link->hash == hash && aster_bytes_equal(name_of(queue), resource)) {
            return queue;
        }
    }
    return NULL;
}

static struct memory_queue *queue_create(uint64_t hash, struct aster_bytes resource)
{
    struct memory_queue *queue = calloc(1, sizeof *queue + resource.size);
    if (queue != NULL) {
        queue->link.hash = hash;
        queue->timer.kind = MEMORY_TIMER_QUEUE;
        queue->name_size = resource.size;
        memcpy(queue->name, resource.data, resource.size);
    }
    return queue;
}

static void queue_destroy(struct memory_stripe *stripe, struct memory_queue *queue)
{
    aster_memory_timers_unset(&stripe->timers, &queue->timer);
    aster_memory_links_remove(&stripe->queues, &queue->link);
    free(queue);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns != 0 && (b_ns == 0 || a_ns < b_ns) ? a_ns : b_ns;
}

static aster_status check_room(struct memory *memory, const struct memory_queue *queue, struct aster_error *error)
{
    if ((queue != NULL ? queue->count : 0) >= memory->limits.waiters_per_resource_max) {
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "waiters_per_resource_max is %zu and reached: try again later or raise the limit",
                               memory->limits.waiters_per_resource_max);
    }
    if (atomic_fetch_add(&memory->waiters, 1) >= memory->limits.waiters_total_max) {
        atomic_fetch_sub(&memory->waiters, 1);
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "waiters_total_max is %zu and reached: try again later or raise the limit",
                               memory->limits.waiters_total_max);
    }
    return ASTER_OK;
}

static void insert(struct memory_stripe *stripe, struct memory_queue *queue, struct memory_waiter *waiter, bool first)
{
    struct aster_request *request = waiter->request;
    waiter->queue = queue;
    waiter->previous = first ? NULL : queue->last;
    waiter->next = first ? queue->first : NULL;
    *(waiter->previous != NULL ? &waiter->previous->next : &queue->first) = waiter;
    *(waiter->next != NULL ? &waiter->next->previous : &queue->last) = waiter;
    queue->count++;
    aster_memory_links_insert(&stripe->requests, &waiter->link, hash_of_request(request));
    aster_memory_timers_set(&stripe->timers, &waiter->timer, earlier(request->wait_until_ns, request->deadline_ns));
    atomic_fetch_add(&stripe->waiting, 1);
}

/* Put it in the queue of its resource, which is made if need be. False = no memory. */
static bool join(struct memory_stripe *stripe, uint64_t hash, struct memory_queue *queue, struct aster_request *request,
                 bool first)
{
    struct memory_waiter *waiter = calloc(1, sizeof *waiter);
    struct memory_queue *fresh = queue == NULL ? queue_create(hash, request->operation.resource) : NULL;
    if (waiter == NULL || (queue == NULL && fresh == NULL) || !aster_memory_links_reserve(&stripe->requests) ||
        !aster_memory_links_reserve(&stripe->queues) || !aster_memory_timers_reserve(&stripe->timers, 2)) {
        free(waiter);
        free(fresh);
        return false;
    }
    if (fresh != NULL) {
        queue = fresh;
        aster_memory_links_insert(&stripe->queues, &queue->link, hash);
        aster_memory_timers_set(&stripe->timers, &queue->timer, aster_table_deadline(stripe->table, name_of(queue)));
    }
    waiter->timer.kind = MEMORY_TIMER_WAITER;
    waiter->request = request;
    insert(stripe, queue, waiter, first);
    return true;
}

aster_status aster_memory_wait_in_line(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                                       struct aster_request *request, struct aster_error *error)
{
    struct memory_queue *queue = aster_memory_queue_find(stripe, hash, request->operation.resource);
    aster_status status = aster_memory_alarm_start(memory, error);
    if (status == ASTER_OK) {
        status = check_room(memory, queue, error);
    }
    if (status == ASTER_OK && !join(stripe, hash, queue, request, false)) {
        atomic_fetch_sub(&memory->waiters, 1);
        status = aster_error_set(error, ASTER_ERR_NOMEM, "no memory to wait in line");
    }
    return status;
}

bool aster_memory_wait_first(struct memory *memory, struct memory_stripe *stripe, uint64_t hash,
                             struct aster_request *request, int64_t again_ns)
{
    struct aster_bytes resource = request->operation.resource;
    if (!join(stripe, hash, aster_memory_queue_find(stripe, hash, resource), request, true)) {
        return false;
    }
    atomic_fetch_add(&memory->waiters, 1);
    aster_memory_timers_set(&stripe->timers, &aster_memory_queue_find(stripe, hash, resource)->timer, again_ns);
    return true;
}

/* Take the waiter out of everything. The queue stays, also when it is empty. */
static void leave_line(struct memory *memory, struct memory_stripe *stripe, struct memory_waiter *waiter)
{
    struct memory_queue *queue = waiter->queue;
    *(waiter->previous != NULL ? &waiter->previous->next : &queue->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &queue->last) = waiter->previous;
    queue->count--;
    aster_memory_links_remove(&stripe->requests, &waiter->link);
    aster_memory_timers_unset(&stripe->timers, &waiter->timer);
    atomic_fetch_sub(&stripe->waiting, 1);
    atomic_fetch_sub(&memory->waiters, 1);
}

static void answer(struct memory *memory, struct memory_stripe *stripe, struct memory_waiter *waiter,
                   aster_status status, struct memory_outbox *outbox)
{
    leave_line(memory, stripe, waiter);
    waiter->status = status;
    waiter->next = NULL;
    *outbox->tail = waiter;
    outbox->tail = &waiter->next;
}

static bool has_given_up(const struct aster_request *request, int64_t now_ns)
{
    return now_ns >= earlier(request->wait_until_ns, request->deadline_ns);
}

/* It was decided: it leaves the line, and is told now unless the committer has its answer. */
static void end_waiting(struct memory *memory, struct memory_stripe *stripe, struct memory_waiter *waiter,
                        aster_status status, bool held, struct memory_outbox *outbox)
{
    if (status == ASTER_OK && !held && memory_commits(memory)) {
        status =
            aster_memory_hold(memory, stripe, waiter->queue->link.hash, waiter->request, &waiter->reply, &held, NULL);
    }
    if (held) {
        leave_line(memory, stripe, waiter);
        free(waiter);
    } else {
        answer(memory, stripe, waiter, status, outbox);
    }
}

/* Decide the acquire of `waiter` now, which it may no longer be allowed. False: the row is held, and it goes on
 * waiting. */
static bool try_grant(struct memory *memory, struct memory_stripe *stripe, struct memory_waiter *waiter, int64_t now_ns,
                      struct memory_outbox *outbox)
{
    struct aster_table_result result;
    bool held = false;
    const struct aster_operation *operation = &waiter->request->operation;
    aster_status status;
    if (memory->authorize != NULL && !memory->authorize(operation, memory->authorize_user)) {
        status = aster_memory_deny_unauthorized(memory, stripe, operation, now_ns, &waiter->reply, NULL);
        end_waiting(memory, stripe, waiter, status, false, outbox);
        return true;
    }
    stripe->serving = true;
    status =
        aster_memory_apply(memory, stripe, waiter->queue->link.hash, waiter->request, now_ns, &result, &held, NULL);
    stripe->serving = false;
    if (status == ASTER_OK && result.effect.decision.outcome == ASTER_DENIED) {
        return false;
    }
    if (status == ASTER_OK && !held && aster_reply_set(&waiter->reply, &result.effect.decision) != ASTER_OK) {
        status = ASTER_ERR_INDETERMINATE;
    }
    end_waiting(memory, stripe, waiter, status, held, outbox);
    return true;
}

void aster_memory_queue_serve(struct memory *memory, struct memory_stripe *stripe, struct memory_queue *queue,
                              int64_t now_ns, struct memory_outbox *outbox)
{
    int64_t deadline_ns = aster_table_deadline(stripe->table, name_of(queue));
    bool available = deadline_ns == INT64_MAX || deadline_ns <= now_ns;
    while (available && queue->first != NULL) {
        struct memory_waiter *first = queue->first;
        if (has_given_up(first->request, now_ns)) {
            answer(memory, stripe, first, ASTER_ERR_TIMEOUT, outbox);
        } else if (!try_grant(memory, stripe, first, now_ns, outbox)) {
            break;
        } else {
            deadline_ns = aster_table_deadline(stripe->table, name_of(queue));
            available = deadline_ns == INT64_MAX || deadline_ns <= now_ns; /* denied or failed: the next one's turn */
        }
    }
    if (queue->first == NULL) {
        queue_destroy(stripe, queue);
    } else {
        aster_memory_timers_set(&stripe->timers, &queue->timer, aster_table_deadline(stripe->table, name_of(queue)));
    }
}

/* Its time to wait is over while another holds the row: the answer is the denial it would have got at once. */
static void give_up(struct memory *memory, struct memory_stripe *stripe, struct memory_waiter *waiter, int64_t now_ns,
                    struct memory_outbox *outbox)
{
    const struct aster_request *request = waiter->request;
    struct memory_queue *queue = waiter->queue;
    aster_status status = ASTER_ERR_TIMEOUT;
    bool held = false;
    if (request->deadline_ns == 0 || now_ns < request->deadline_ns) {
        struct aster_table_result result;
        status = aster_memory_apply(memory, stripe, queue->link.hash, waiter->request, now_ns, &result, &held, NULL);
        if (status == ASTER_OK && !held && aster_reply_set(&waiter->reply, &result.effect.decision) != ASTER_OK) {
            status = ASTER_ERR_NOMEM;
        }
    }
    end_waiting(memory, stripe, waiter, status, held, outbox);
    if (queue->first == NULL) {
        queue_destroy(stripe, queue);
    }
}

void aster_memory_timers_run(struct memory *memory, struct memory_stripe *stripe, int64_t now_ns,
                             struct memory_outbox *outbox)
{
    struct memory_timer *timer = aster_memory_timers_first(&stripe->timers);
    for (; timer != NULL && timer->at_ns <= now_ns; timer = aster_memory_timers_first(&stripe->timers)) {
        bool of_queue = timer->kind == MEMORY_TIMER_QUEUE;
        struct memory_queue *queue =
            of_queue ? OWNER(timer, struct memory_queue, timer) : OWNER(timer, struct memory_waiter, timer)->queue;
        if (of_queue || aster_table_deadline(stripe->table, name_of(queue)) <= now_ns) {
            aster_memory_queue_serve(memory, stripe, queue, now_ns, outbox);
        } else {
            give_up(memory, stripe, OWNER(timer, struct memory_waiter, timer), now_ns, outbox);
        }
    }
}

void aster_memory_waiters_answer_all(struct memory *memory, struct memory_stripe *stripe, aster_status status,
                                     struct memory_outbox *outbox)
{
    for (size_t i = 0; i < stripe->queues.bucket_count; i++) {
        while (stripe->queues.buckets[i] != NULL) {
            struct memory_queue *queue = OWNER(stripe->queues.buckets[i], struct memory_queue, link);
            while (queue->first != NULL) {
                answer(memory, stripe, queue->first, status, outbox);
            }
            queue_destroy(stripe, queue);
        }
    }
}

void aster_memory_outbox_init(struct memory_outbox *outbox)
{
    outbox->first = NULL;
    outbox->tail = &outbox->first;
}

static const char *what_happened(aster_status status)
{
    switch (status) {
    case ASTER_ERR_TIMEOUT:
        return "the time to wait was over before it was granted; nothing was applied";
    case ASTER_ERR_CANCELLED:
        return "it was cancelled while it waited; nothing was applied";
    case ASTER_ERR_CLOSED:
        return "the memory serializer was closed while it waited; nothing was applied";
    case ASTER_ERR_INDETERMINATE:
        return "it was granted, but there is no memory for the answer: repeat it under the same id";
    default:
        return aster_status_name(status);
    }
}

void aster_memory_outbox_send(struct memory_stripe *stripe, struct memory_outbox *outbox)
{
    struct memory_waiter *waiter = outbox->first;
    while (waiter != NULL) {
        struct memory_waiter *next = waiter->next;
        struct aster_error error;
        if (waiter->status == ASTER_OK) {
            waiter->request->complete(waiter->request, ASTER_OK, &waiter->reply.decision, NULL);
        } else {
            aster_error_set(&error, waiter->status, "acquire ended while it waited in line: %s",
                            what_happened(waiter->status));
            waiter->request->complete(waiter->request, waiter->status, NULL, &error);
        }
        aster_reply_fini(&waiter->reply);
        free(waiter);
        atomic_fetch_sub(&stripe->unanswered, 1);
        waiter = next;
    }
}

static struct memory_waiter *find_waiter(const struct memory_stripe *stripe, const struct aster_request *request)
{
    struct memory_link *link = aster_memory_links_chain(&stripe->requests, hash_of_request(request));
    for (; link != NULL; link = link->next) {
        struct memory_waiter *waiter = OWNER(link, struct memory_waiter, link);
        if (waiter->request == request) {
            return waiter;
        }
    }
    return NULL;
}

void aster_memory_cancel_locked(struct memory *memory, struct memory_stripe *stripe,
                                const struct aster_request *request, struct memory_outbox *outbox)
{
    struct memory_waiter *waiter = find_waiter(stripe, request);
    if (waiter == NULL) {
        return;
    }
    struct memory_queue *queue = waiter->queue;
    answer(memory, stripe, waiter, ASTER_ERR_CANCELLED, outbox);
    if (queue->first == NULL) {
        queue_destroy(stripe, queue);
    }
}

void aster_memory_cancel(void *self, struct aster_request *request)
{
    struct memory *memory = self;
    /* The request may be gone already, so its resource cannot be read to find the stripe. */
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        if (atomic_load(&stripe->waiting) > 0 || atomic_load(&stripe->work) > 0) {
            aster_memory_stripe_leave_cancel(memory, stripe, request);
        }
    }
}
