/* Where requests come in. Nothing here waits for the network. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "engine/client_operation.h"
#include "platform/entropy.h"
#include "serializer/remote/remote.h"

#define VERDICT_NS (200 * ASTER_NS_PER_MS) /* how long a grantor may take to give a request back */
#define CLOSE_NS (500 * ASTER_NS_PER_MS)   /* the same for all of them at the end */
#define NEAR_NS (10 * ASTER_NS_PER_MS)
#define SHORT_ID 16

struct remote_queue *remote_queue_for(struct remote_entry *entry)
{
    bool renewal = entry->request != NULL && entry->request->operation.kind == ASTER_OP_RENEW;
    return renewal ? &entry->remote->renewals : &entry->remote->others;
}

void remote_queue_append(struct remote_queue *queue, struct remote_entry *entry)
{
    entry->queue = queue;
    entry->next = NULL;
    entry->previous = queue->tail;
    *(queue->tail != NULL ? &queue->tail->next : &queue->head) = entry;
    queue->tail = entry;
}

void remote_queue_prepend(struct remote_queue *queue, struct remote_entry *entry)
{
    entry->queue = queue;
    entry->previous = NULL;
    entry->next = queue->head;
    *(queue->head != NULL ? &queue->head->previous : &queue->tail) = entry;
    queue->head = entry;
}

void remote_wake_locked(struct remote *remote)
{
    if (!remote->wake_posted) {
        remote->wake_posted = true;
        aster_loop_post(remote->loop, &remote->wake);
    }
}

/* Whoever is called differently by the grantor would be answered about somebody else's leases. */
static aster_status check_caller(const struct remote *remote, const struct aster_operation *operation,
                                 struct aster_error *error)
{
    bool anonymous = operation->kind == ASTER_OP_INSPECT && operation->caller.size == 0;
    if (anonymous || aster_bytes_equal(operation->caller, remote->identity)) {
        return ASTER_OK;
    }
    char caller[ASTER_PRINTABLE_MAX];
    char own[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "%s as \"%.40s\", but the grantor knows this node as \"%.*s\"%s: use that identity "
                           "(aster_grantor_identity, `aster node id`)",
                           aster_operation_name(operation->kind), aster_printable(operation->caller, caller), SHORT_ID,
                           aster_printable(remote->identity, own), strlen(own) > SHORT_ID ? "..." : "");
}

/* The bounds of ttl and value are the grantor's, whose answer names them; here only what no grantor takes is refused.
 */
static aster_status check(const struct remote *remote, const struct aster_operation *operation,
                          struct aster_error *error)
{
    struct aster_limits widest = ASTER_LIMITS_INIT;
    widest.ttl_min_ms = 1;
    widest.ttl_max_ms = ASTER_TTL_HARD_MAX_MS;
    aster_status status = aster_client_operation_check(operation, &widest, error);
    return status == ASTER_OK ? check_caller(remote, operation, error) : status;
}

static aster_status make_entry(struct remote *remote, struct aster_request *request, struct remote_entry **entry,
                               struct aster_error *error)
{
    static const unsigned char none[ASTER_REQUEST_ID_SIZE];
    struct remote_entry *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a request to the grantor");
    }
    made->remote = remote;
    made->request = request;
    made->deadline_ns = request->deadline_ns != 0 ? request->deadline_ns : INT64_MAX;
    memcpy(made->request_id, request->operation.request_id, sizeof made->request_id);
    if (memcmp(made->request_id, none, sizeof none) == 0) { /* we may have to send it twice */
        aster_status status = aster_entropy_fill(made->request_id, sizeof made->request_id, error);
        if (status != ASTER_OK) {
            free(made);
            return status;
        }
    }
    *entry = made;
    return ASTER_OK;
}

static aster_status enqueue_locked(struct remote *remote, struct remote_entry *entry, struct aster_error *error)
{
    if (remote->closed) {
        return aster_error_set(error, ASTER_ERR_CLOSED, "the grantor serializer is closed");
    }
    if (remote->unanswered >= remote->options.queue_max) {
        return aster_error_set(
            error, ASTER_ERR_LIMIT,
            "queue_max of the grantor serializer is reached: %zu requests are unanswered; retry later",
            remote->options.queue_max);
    }
    aster_status status = aster_timers_reserve(&remote->deadlines, error);
    if (status != ASTER_OK) {
        return status;
    }
    remote->unanswered++;
    entry->timer.fire = remote_deadline_fire;
    if (entry->deadline_ns != INT64_MAX) {
        aster_timers_set(&remote->deadlines, &entry->timer, entry->deadline_ns);
    }
    const void *key = entry->request != NULL ? (const void *)entry->request : (const void *)entry->read;
    remote_index_add(&remote->entries, &entry->node, (uint64_t)(uintptr_t)key);
    remote_queue_append(remote_queue_for(entry), entry);
    remote_wake_locked(remote);
    return ASTER_OK;
}

aster_status remote_enqueue(struct remote *remote, struct remote_entry *entry, struct aster_error *error)
{
    pthread_mutex_lock(&remote->lock);
    aster_status status = enqueue_locked(remote, entry, error);
    pthread_mutex_unlock(&remote->lock);
    return status;
}

void remote_submit(void *self, struct aster_request *request)
{
    struct remote *remote = self;
    struct remote_entry *entry = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = check(remote, &request->operation, &error);
    if (status == ASTER_OK && request->deadline_ns != 0 && request->deadline_ns <= aster_clock_now_ns(&remote->clock)) {
        status = aster_error_set(&error, ASTER_ERR_TIMEOUT, "the deadline of %s had passed before it was submitted",
                                 aster_operation_name(request->operation.kind));
    }
    if (status == ASTER_OK) {
        status = make_entry(remote, request, &entry, &error);
    }
    if (status == ASTER_OK) {
        status = remote_enqueue(remote, entry, &error);
    }
    if (status != ASTER_OK) {
        free(entry);
        request->complete(request, status, NULL, &error);
    }
}

/* They meet in the queue, and the loop's thread packs what it finds there into one message. */
void remote_submit_many(void *self, struct aster_request **requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        remote_submit(self, requests[i]);
    }
}

/* Shorten what the grantor has: its answer decides, but not for long. */
static void recall(struct remote_entry *entry, int64_t until_ns)
{
    if (until_ns < entry->deadline_ns) {
        entry->deadline_ns = until_ns;
        aster_timers_set(&entry->remote->deadlines, &entry->timer, until_ns);
    }
}

static void list_cancel(struct remote *remote, struct remote_exchange *exchange)
{
    if (exchange->count == 1 && !exchange->cancel_listed) { /* a renewal in a batch is decided as it arrives */
        exchange->cancel_listed = true;
        exchange->next_cancel = remote->cancels;
        remote->cancels = exchange;
    }
}

void remote_cancel(void *self, struct aster_request *request)
{
    struct remote *remote = self;
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    struct remote_entry *entry =
        (struct remote_entry *)remote_index_find(&remote->entries, (uint64_t)(uintptr_t)request);
    int64_t now_ns = aster_clock_now_ns(&remote->clock);
    if (entry != NULL && entry->exchange == NULL) {
        /* Who gives up at the deadline wants to know why nothing happened. */
        bool late = entry->deadline_ns != INT64_MAX && now_ns >= entry->deadline_ns - NEAR_NS;
        remote_end_locked(entry, late ? REMOTE_END_DEADLINE : REMOTE_END_CANCELLED, &ended);
    } else if (entry != NULL && !entry->cancelled) {
        entry->cancelled = true;
        recall(entry, now_ns + VERDICT_NS);
        list_cancel(remote, entry->exchange);
        remote_wake_locked(remote);
    }
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
}

void remote_close(void *self)
{
    struct remote *remote = self;
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    if (!remote->closed) {
        remote->closed = true;
        int64_t until_ns = aster_clock_now_ns(&remote->clock) + CLOSE_NS;
        struct remote_node *next;
        for (struct remote_node *node = remote_index_next(&remote->entries, NULL); node != NULL; node = next) {
            struct remote_entry *entry = (struct remote_entry *)node;
            next = remote_index_next(&remote->entries, node);
            if (entry->exchange == NULL) {
                remote_end_locked(entry, REMOTE_END_CLOSED, &ended);
            } else {
                recall(entry, until_ns);
                list_cancel(remote, entry->exchange);
            }
        }
        remote_wake_locked(remote);
    }
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
}
