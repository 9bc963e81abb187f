/* Frames become answers. Whatever does not fit what was asked ends the connection: a grantor that answers something
 * else is not believed in anything. */
#include <stdlib.h>

#include "base/error.h"
#include "serializer/remote/remote.h"

#define QUOTED_MAX ((size_t)300) /* of a grantor's text inside ours */

/* What a lease must not take for its own: the grantor's end is not the serializer's end. */
static aster_status status_here(const struct remote_entry *entry, aster_status status)
{
    switch (status) {
    case ASTER_ERR_CLOSED:
        return entry->remote->closed ? ASTER_ERR_CLOSED : ASTER_ERR_UNREACHABLE;
    case ASTER_ERR_CANCELLED:
        return entry->cancelled        ? ASTER_ERR_CANCELLED
               : entry->remote->closed ? ASTER_ERR_CLOSED
                                       : ASTER_ERR_UNREACHABLE;
    case ASTER_ERR_FORKED:
    case ASTER_ERR_REENTRANT:
        return ASTER_ERR_IO;
    default:
        return status;
    }
}

/* An error speaks of the sending that it answers. The one before it, whose reply was lost, may have been applied. */
static void describe_failure(const struct remote_entry *entry, aster_status status, struct aster_bytes message,
                             struct aster_error *error)
{
    const char *text = message.size > 0 ? (const char *)message.data : "";
    if (entry->sent_before && remote_is_mutating(entry)) {
        aster_error_set(error, ASTER_ERR_INDETERMINATE,
                        "%s was sent on a connection that was lost and may have been applied there; sent again it was "
                        "answered %s: %.*s; repeat it under the same id",
                        remote_verb(entry), aster_status_name(status),
                        (int)(message.size < QUOTED_MAX ? message.size : QUOTED_MAX), text);
    } else {
        aster_error_set(error, status_here(entry, status), "%.*s", (int)message.size, text);
    }
}

static void fail(struct remote_entry *entry, aster_status status, struct aster_bytes message)
{
    struct aster_error error = ASTER_ERROR_INIT;
    describe_failure(entry, status, message, &error);
    if (entry->request != NULL) {
        entry->request->complete(entry->request, error.status, NULL, &error);
    } else {
        remote_read_end(entry->read, error.status, &error);
    }
}

static void decide(struct remote_entry *entry, const struct aster_decision *decision)
{
    entry->request->complete(entry->request, ASTER_OK, decision, NULL);
}

/* A granted renewal of a batch comes without what we know. */
static void decide_renewed(struct remote_entry *entry, const struct aster_renewed *renewed)
{
    const struct aster_operation *operation = &entry->request->operation;
    struct aster_decision decision = renewed->decision;
    if (decision.outcome == ASTER_GRANTED) {
        decision.carried_epoch = operation->epoch;
        decision.snapshot.resource = operation->resource;
        decision.snapshot.held = true;
        decision.snapshot.holder = operation->caller;
    }
    decide(entry, &decision);
}

static void answer_entry(struct remote_entry *entry, size_t position, const struct aster_answer *answer)
{
    if (answer->kind == ASTER_ANSWER_ERROR) {
        fail(entry, answer->error.status, answer->error.message);
    } else if (answer->kind == ASTER_ANSWER_DECISION) {
        decide(entry, &answer->decision);
    } else if (answer->kind == ASTER_ANSWER_RENEWED_MANY) {
        const struct aster_renewed *renewed = &answer->renewed.results[position];
        if (renewed->status != ASTER_OK) {
            fail(entry, renewed->status, renewed->message);
        } else {
            decide_renewed(entry, renewed);
        }
    } else {
        remote_read_end(entry->read, ASTER_OK, NULL);
    }
    free(entry);
}

static bool decision_fits(const struct remote_exchange *exchange, const struct aster_decision *decision)
{
    const struct remote_entry *entry = exchange->entries[0];
    return exchange->count == 1 && entry->request != NULL && decision->kind == entry->request->operation.kind &&
           aster_bytes_equal(decision->snapshot.resource, entry->request->operation.resource);
}

static bool fits(const struct remote_exchange *exchange, const struct aster_answer *answer)
{
    switch (answer->kind) {
    case ASTER_ANSWER_ERROR:
        return true;
    case ASTER_ANSWER_DECISION:
        return decision_fits(exchange, &answer->decision);
    case ASTER_ANSWER_RENEWED_MANY:
        return exchange->count > 1 && answer->renewed.count == exchange->count;
    case ASTER_ANSWER_ROWS:
    case ASTER_ANSWER_EVENTS:
    case ASTER_ANSWER_NODES:
    case ASTER_ANSWER_CHANGED:
        return exchange->count == 1 && exchange->entries[0]->read != NULL;
    default:
        return false;
    }
}

/* Take the entries out under the lock; answer them outside. NULL: there is nothing to answer (yet). */
static struct remote_entry *take(struct remote *remote, const struct aster_answer *answer, struct aster_bytes payload,
                                 bool *believed)
{
    struct remote_entry *list = NULL;
    *believed = true;
    struct remote_exchange *exchange = (struct remote_exchange *)remote_index_find(&remote->exchanges, answer->id);
    if (exchange == NULL) {
        return NULL; /* given up before the reply came */
    }
    *believed = fits(exchange, answer);
    if (!*believed) {
        return NULL;
    }
    struct remote_entry *first = exchange->entries[0];
    if (exchange->count == 1 && first->read != NULL && answer->kind != ASTER_ANSWER_ERROR &&
        !remote_read_take(first->read, answer, payload)) {
        return NULL;
    }
    for (size_t i = exchange->count; i-- > 0;) {
        struct remote_entry *entry = exchange->entries[i];
        if (entry != NULL) {
            bool last = exchange->left == 1;
            remote_detach(entry);
            entry->next = list;
            list = entry;
            if (last) { /* and the exchange is gone */
                break;
            }
        }
    }
    return list;
}

void remote_frame(struct remote *remote, struct aster_bytes payload)
{
    struct aster_answer answer;
    struct aster_error error = ASTER_ERROR_INIT;
    bool believed = false;
    struct remote_entry *list = NULL;
    remote->scratch.used = 0;
    aster_status status = aster_answer_decode(payload, &remote->scratch, &answer, &error);
    if (status == ASTER_OK) {
        pthread_mutex_lock(&remote->lock);
        list = take(remote, &answer, payload, &believed);
        pthread_mutex_unlock(&remote->lock);
    }
    if (!believed) {
        remote_log(remote, ASTER_GRANTOR_NOT_UNDERSTOOD, "the grantor's answer is not understood: %s",
                   status != ASTER_OK ? error.message : "it does not fit the request");
        aster_link_close(remote_link(remote), "not understood");
        return;
    }
    size_t count = 0;
    while (list != NULL) {
        struct remote_entry *next = list->next;
        answer_entry(list, list->position, &answer);
        list = next;
        count++;
    }
    if (count > 0) {
        remote_answered(remote, count);
    }
    if (count > 0 && remote->full) {
        remote_flush(remote);
    }
}
