/* The queues become frames: renewals first, as many in one message as fit. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/remote/remote.h"
#include "wire/frame.h"

#define BATCH_BYTES_MAX 98304                    /* of names and ids, so that the message fits a frame */
#define RENEWAL_BYTES 64                         /* what surrounds a name in it, at most */
#define ANSWER_RESERVE_NS (50 * ASTER_NS_PER_MS) /* of a deadline, for the answer's way back */
#define AFTER_WAIT_MS 30000                      /* for the answer to a wait without a deadline */
#define MEMORY_NS (20 * ASTER_NS_PER_MS)         /* when to look again whether there is some */

static int64_t ms_left(const struct remote *remote, int64_t until_ns, int64_t reserve_ns)
{
    int64_t left_ns = until_ns - aster_clock_now_ns(&remote->clock);
    left_ns -= left_ns / 8 < reserve_ns ? left_ns / 8 : reserve_ns;
    int64_t ms = left_ns / ASTER_NS_PER_MS;
    return ms < 0 ? 0 : ms > UINT32_MAX ? UINT32_MAX : ms;
}

static uint32_t deadline_ms(const struct remote *remote, const struct remote_entry *entry)
{
    int64_t ms = 0;
    if (entry->deadline_ns != INT64_MAX) {
        ms = ms_left(remote, entry->deadline_ns, ANSWER_RESERVE_NS);
        ms = ms > 0 ? ms : 1;
    } else if (entry->request != NULL && entry->request->wait_until_ns != 0) {
        ms = ms_left(remote, entry->request->wait_until_ns, 0) + AFTER_WAIT_MS;
    }
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

static struct aster_operation operation_of(const struct remote_entry *entry)
{
    struct aster_operation operation = entry->request->operation;
    memcpy(operation.request_id, entry->request_id, sizeof operation.request_id);
    return operation;
}

bool remote_send_call(struct remote *remote, const struct aster_call *call, aster_status *status,
                      struct aster_error *error)
{
    size_t length = 0;
    remote->scratch.used = 0;
    *status = aster_call_encode(call, &remote->scratch, remote->buffer, ASTER_FRAME_PAYLOAD_MAX, &length, error);
    if (*status != ASTER_OK) {
        return false;
    }
    aster_status sent = aster_link_send(remote_link(remote), (struct aster_bytes){remote->buffer, length}, error);
    remote->blocked = sent != ASTER_OK && sent != ASTER_ERR_NOMEM; /* until drained(), or until closed() */
    *status = sent == ASTER_ERR_NOMEM ? sent : ASTER_OK;
    return sent == ASTER_OK;
}

static bool send_exchange(struct remote *remote, struct remote_exchange *exchange, aster_status *status)
{
    struct aster_operation *operations = NULL;
    struct aster_call call = {.id = exchange->node.key, .deadline_ms = deadline_ms(remote, exchange->entries[0])};
    struct remote_entry *first = exchange->entries[0];
    if (first->read != NULL) {
        remote_read_call(first->read, &call);
    } else if (exchange->count == 1) {
        call.kind = ASTER_CALL_OPERATION;
        call.one.operation = operation_of(first);
        int64_t wait_ns = first->request->wait_until_ns;
        bool waits = first->request->operation.kind == ASTER_OP_ACQUIRE && wait_ns != 0;
        call.one.wait_ms = waits ? (uint32_t)ms_left(remote, wait_ns, 0) : 0;
    } else {
        operations = malloc(exchange->count * sizeof *operations);
        if (operations == NULL) {
            *status = ASTER_ERR_NOMEM;
            return false;
        }
        for (size_t i = 0; i < exchange->count; i++) {
            operations[i] = operation_of(exchange->entries[i]);
            uint32_t own_ms = deadline_ms(remote, exchange->entries[i]);
            call.deadline_ms = own_ms > call.deadline_ms ? own_ms : call.deadline_ms;
        }
        call.kind = ASTER_CALL_RENEW_MANY;
        call.many.operations = operations;
        call.many.count = exchange->count;
    }
    bool sent = remote_send_call(remote, &call, status, NULL);
    free(operations);
    return sent;
}

static size_t count_batch(const struct remote *remote, const struct remote_queue *queue)
{
    size_t count = 0;
    size_t bytes = 0;
    size_t room = remote->out_max - remote->out;
    size_t most = room < ASTER_WIRE_RENEW_MANY_MAX ? room : ASTER_WIRE_RENEW_MANY_MAX;
    for (const struct remote_entry *at = queue->head; at != NULL && count < most; at = at->next) {
        bytes += at->request->operation.resource.size + RENEWAL_BYTES;
        if (bytes > BATCH_BYTES_MAX) {
            break;
        }
        count++;
    }
    return count;
}

/* The head of the queue, and with it what may travel along. */
static struct remote_exchange *load(struct remote *remote, struct remote_queue *queue)
{
    size_t count = queue == &remote->renewals ? count_batch(remote, queue) : 1;
    struct remote_exchange *exchange = malloc(sizeof *exchange + count * sizeof exchange->entries[0]);
    if (exchange == NULL) {
        return NULL;
    }
    exchange->count = exchange->left = count;
    exchange->cancel_listed = false;
    exchange->next_cancel = NULL;
    exchange->newer = NULL;
    exchange->older = remote->newest;
    if (remote->newest != NULL) {
        remote->newest->newer = exchange;
    }
    remote->newest = exchange;
    remote_index_add(&remote->exchanges, &exchange->node, ++remote->last_id);
    for (size_t i = 0; i < count; i++) {
        struct remote_entry *entry = queue->head;
        queue->head = entry->next;
        *(queue->head != NULL ? &queue->head->previous : &queue->tail) = NULL;
        entry->queue = NULL;
        entry->exchange = exchange;
        entry->position = i;
        exchange->entries[i] = entry;
    }
    remote->out += count;
    return exchange;
}

static void unload(struct remote *remote, struct remote_queue *queue, struct remote_exchange *exchange)
{
    remote->out -= exchange->count;
    for (size_t i = exchange->count; i-- > 0;) {
        exchange->entries[i]->exchange = NULL;
        remote_queue_prepend(queue, exchange->entries[i]);
    }
    remote_exchange_free(remote, exchange);
}

/* Nobody tells when there is memory again. While there is a connection the timer has nothing else to do. */
static void retry_soon(struct remote *remote)
{
    aster_timers_set(aster_loop_timers(remote->loop), &remote->backoff, aster_loop_now_ns(remote->loop) + MEMORY_NS);
}

/* False when the rest must wait. */
static bool send_next(struct remote *remote, struct remote_queue *queue, struct remote_entry **ended)
{
    aster_status status = ASTER_OK;
    struct remote_exchange *exchange = load(remote, queue);
    if (exchange == NULL) {
        retry_soon(remote);
        return false;
    }
    if (send_exchange(remote, exchange, &status)) {
        return true;
    }
    unload(remote, queue, exchange);
    if (status == ASTER_ERR_INVALID) {
        remote_end_locked(queue->head, REMOTE_END_UNSENDABLE, ended);
        return true;
    }
    if (status == ASTER_ERR_NOMEM) {
        retry_soon(remote);
    }
    return false;
}

static void send_cancels(struct remote *remote)
{
    while (remote->cancels != NULL && !remote->blocked) {
        struct remote_exchange *exchange = remote->cancels;
        aster_status status = ASTER_OK;
        struct aster_call call = {.id = ++remote->last_id, .kind = ASTER_CALL_CANCEL, .cancel_id = exchange->node.key};
        if (!remote_send_call(remote, &call, &status, NULL)) {
            if (status == ASTER_ERR_NOMEM) {
                retry_soon(remote);
            }
            return;
        }
        remote->cancels = exchange->next_cancel;
        exchange->cancel_listed = false;
    }
}

/* More than the grantor takes would be refused, and asked again, and refused. */
static void send_queue(struct remote *remote, struct remote_queue *queue, size_t out_max, struct remote_entry **ended)
{
    bool more = true;
    while (more && !remote->blocked && queue->head != NULL && remote->out < out_max) {
        more = send_next(remote, queue, ended);
    }
    remote->full = remote->full || (queue->head != NULL && remote->out >= out_max);
}

void remote_flush(struct remote *remote)
{
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    if (remote->connected) {
        remote->full = false;
        send_cancels(remote);
        send_queue(remote, &remote->renewals, remote->out_max, &ended);
        send_queue(remote, &remote->others, remote->out_max - remote->out_max / 4, &ended);
    }
    bool wanted = !remote->connected && (remote->renewals.head != NULL || remote->others.head != NULL);
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
    if (wanted) {
        remote_connect(remote);
    }
}

void remote_wake_run(struct aster_task *task)
{
    struct remote *remote = (struct remote *)((char *)task - offsetof(struct remote, wake));
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    remote->wake_posted = false;
    while (remote->closed && remote->others.head != NULL) {
        remote_end_locked(remote->others.head, REMOTE_END_CLOSED, &ended);
    }
    while (remote->closed && remote->renewals.head != NULL) {
        remote_end_locked(remote->renewals.head, REMOTE_END_CLOSED, &ended);
    }
    bool done = remote->closed && remote->unanswered == 0;
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
    if (remote->stopped) {
        return;
    }
    remote_flush(remote);
    remote_tick(remote);
    if (done) {
        remote_disconnect(remote, "closed");
    }
}
