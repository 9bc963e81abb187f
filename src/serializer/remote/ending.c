/* How requests end without a decision, and what may then be said about them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/remote/remote.h"

#define TICK_MAX_NS (1000 * ASTER_NS_PER_MS) /* the loop's clock stands still in suspend, the serializer's does not */
#define TICK_VIRTUAL_NS (5 * ASTER_NS_PER_MS)

bool remote_is_mutating(const struct remote_entry *entry)
{
    return entry->request != NULL ? entry->request->operation.kind != ASTER_OP_INSPECT
                                  : remote_read_changes(entry->read);
}

static void unqueue(struct remote_entry *entry)
{
    struct remote_queue *queue = entry->queue;
    *(entry->previous != NULL ? &entry->previous->next : &queue->head) = entry->next;
    *(entry->next != NULL ? &entry->next->previous : &queue->tail) = entry->previous;
    entry->queue = NULL;
}

void remote_exchange_free(struct remote *remote, struct remote_exchange *exchange)
{
    if (exchange->cancel_listed) {
        struct remote_exchange **at = &remote->cancels;
        while (*at != exchange) {
            at = &(*at)->next_cancel;
        }
        *at = exchange->next_cancel;
    }
    if (exchange->older != NULL) {
        exchange->older->newer = exchange->newer;
    }
    *(exchange->newer != NULL ? &exchange->newer->older : &remote->newest) = exchange->older;
    remote_index_remove(&remote->exchanges, &exchange->node);
    free(exchange);
}

void remote_detach(struct remote_entry *entry)
{
    struct remote *remote = entry->remote;
    struct remote_exchange *exchange = entry->exchange;
    entry->maybe_applied = exchange != NULL || entry->sent_before;
    if (entry->queue != NULL) {
        unqueue(entry);
    }
    if (exchange != NULL) {
        remote->out--;
        exchange->entries[entry->position] = NULL;
        entry->exchange = NULL;
        if (--exchange->left == 0) { /* a reply that comes after all is about an id that nobody knows */
            remote_exchange_free(remote, exchange);
        }
    }
    aster_timers_unset(&remote->deadlines, &entry->timer);
    aster_timers_unreserve(&remote->deadlines);
    remote_index_remove(&remote->entries, &entry->node);
}

void remote_end_locked(struct remote_entry *entry, enum remote_end end, struct remote_entry **list)
{
    remote_detach(entry);
    entry->end = end;
    entry->next = *list;
    *list = entry;
}

void remote_deadline_fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    struct remote_entry *entry = (struct remote_entry *)((char *)timer - offsetof(struct remote_entry, timer));
    enum remote_end end = entry->cancelled        ? REMOTE_END_CANCELLED
                          : entry->remote->closed ? REMOTE_END_CLOSED
                                                  : REMOTE_END_DEADLINE;
    remote_end_locked(entry, end, &entry->remote->ended);
}

const char *remote_verb(const struct remote_entry *entry)
{
    return entry->request != NULL             ? aster_operation_name(entry->request->operation.kind)
           : remote_read_changes(entry->read) ? "the change of nodes"
                                              : "reading";
}

/* `trouble` is NULL while there is a connection. */
static aster_status describe(const struct remote_entry *entry, const char *trouble, struct aster_error *error)
{
    if (entry->maybe_applied && remote_is_mutating(entry)) {
        return aster_error_set(
            error, ASTER_ERR_INDETERMINATE,
            "%s was sent and not answered%s%.300s; it may have been applied: repeat it under the same id",
            remote_verb(entry), trouble != NULL ? ": " : "", trouble != NULL ? trouble : "");
    }
    switch (entry->end) {
    case REMOTE_END_CANCELLED:
        return aster_error_set(error, ASTER_ERR_CANCELLED, "%s was cancelled; nothing was applied", remote_verb(entry));
    case REMOTE_END_CLOSED:
        return aster_error_set(error, ASTER_ERR_CLOSED, "%s: the serializer was closed; nothing was applied",
                               remote_verb(entry));
    case REMOTE_END_UNSENDABLE:
        return aster_error_set(error, ASTER_ERR_INVALID, "%s cannot be said in grantor.proto; nothing was applied",
                               remote_verb(entry));
    default:
        break;
    }
    if (trouble != NULL) {
        return aster_error_set(error, ASTER_ERR_UNREACHABLE, "no grantor can be reached: %.380s; nothing was applied",
                               trouble);
    }
    return aster_error_set(error, ASTER_ERR_TIMEOUT,
                           "%s: the grantor did not answer before the deadline; nothing was applied",
                           remote_verb(entry));
}

void remote_answered(struct remote *remote, size_t count)
{
    pthread_mutex_lock(&remote->lock);
    remote->unanswered -= count;
    if (remote->unanswered == 0) {
        pthread_cond_broadcast(&remote->idle);
        if (remote->closed) {
            remote_wake_locked(remote); /* to say good-bye */
        }
    }
    pthread_mutex_unlock(&remote->lock);
}

void remote_answer_ended(struct remote *remote, struct remote_entry *list)
{
    char trouble[ASTER_ERROR_MESSAGE_MAX];
    size_t count = 0;
    if (list == NULL) {
        return;
    }
    pthread_mutex_lock(&remote->lock);
    snprintf(trouble, sizeof trouble, "%s", remote->trouble[0] != '\0' ? remote->trouble : "no answer yet");
    bool connected = remote->connected;
    pthread_mutex_unlock(&remote->lock);
    while (list != NULL) {
        struct remote_entry *next = list->next;
        struct aster_error error = ASTER_ERROR_INIT;
        aster_status status = describe(list, connected ? NULL : trouble, &error);
        if (list->request != NULL) {
            list->request->complete(list->request, status, NULL, &error);
        } else {
            remote_read_end(list->read, status, &error);
        }
        free(list);
        list = next;
        count++;
    }
    remote_answered(remote, count);
}

void remote_tick(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    int64_t now_ns = aster_clock_now_ns(&remote->clock);
    aster_timers_fire(&remote->deadlines, now_ns);
    int64_t next_ns = aster_timers_next(&remote->deadlines);
    struct remote_entry *ended = remote->ended;
    remote->ended = NULL;
    pthread_mutex_unlock(&remote->lock);
    struct aster_timers *timers = aster_loop_timers(remote->loop);
    if (next_ns != INT64_MAX) {
        int64_t longest_ns = aster_clock_is_virtual(&remote->clock) ? TICK_VIRTUAL_NS : TICK_MAX_NS;
        int64_t left_ns = next_ns - now_ns;
        aster_timers_set(timers, &remote->tick,
                         aster_loop_now_ns(remote->loop) + (left_ns < longest_ns ? left_ns : longest_ns));
    } else {
        aster_timers_unset(timers, &remote->tick);
    }
    remote_answer_ended(remote, ended);
}

/* What was cancelled is not sent again: its CANCEL went with the connection, and who would give a grant back? */
static void requeue(struct remote_entry *entry, struct remote_entry **ended)
{
    if (entry->cancelled) {
        remote_end_locked(entry, REMOTE_END_CANCELLED, ended);
        return;
    }
    entry->remote->out--;
    entry->exchange->entries[entry->position] = NULL;
    entry->exchange = NULL;
    entry->sent_before = true;
    if (entry->read != NULL) {
        remote_read_restart(entry->read);
    }
    remote_queue_prepend(remote_queue_for(entry), entry);
}

void remote_requeue_all(struct remote *remote, struct remote_entry **ended)
{
    while (remote->newest != NULL) { /* each goes before those that were sent after it */
        struct remote_exchange *exchange = remote->newest;
        exchange->left++; /* held until the end of this round */
        for (size_t i = exchange->count; i-- > 0;) {
            if (exchange->entries[i] != NULL) {
                requeue(exchange->entries[i], ended);
            }
        }
        remote_exchange_free(remote, exchange);
    }
}
