#include "serializer/memory/history.h"

#include <stdlib.h>

#include "base/error.h"

struct memory_history_slot {
    struct aster_event event; /* its views point into bytes */
    char *bytes;
    size_t capacity;
};

aster_status aster_memory_history_init(struct memory_history *history, size_t max, struct aster_error *error)
{
    *history = (struct memory_history){.max = max};
    if (max > 0) {
        history->slots = calloc(max, sizeof history->slots[0]);
        if (history->slots == NULL) {
            return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a history of history_max %zu events", max);
        }
    }
    pthread_mutex_init(&history->mutex, NULL);
    return ASTER_OK;
}

static void free_slots(struct memory_history_slot *slots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(slots[i].bytes);
    }
    free(slots);
}

void aster_memory_history_fini(struct memory_history *history)
{
    free_slots(history->slots, history->max);
    pthread_mutex_destroy(&history->mutex);
}

static char *copy_in(struct aster_bytes *bytes, char *to)
{
    if (bytes->size > 0) {
        memcpy(to, bytes->data, bytes->size);
    }
    bytes->data = to;
    return to + bytes->size;
}

static bool fill(struct memory_history_slot *slot, const struct aster_event *event)
{
    size_t size = event->resource.size + event->actor.size + event->previous.size;
    if (size > slot->capacity || slot->bytes == NULL) {
        char *bytes = realloc(slot->bytes, size > 0 ? size : 1);
        if (bytes == NULL) {
            return false;
        }
        slot->bytes = bytes;
        slot->capacity = size;
    }
    slot->event = *event;
    char *at = copy_in(&slot->event.resource, slot->bytes);
    at = copy_in(&slot->event.actor, at);
    copy_in(&slot->event.previous, at);
    return true;
}

void aster_memory_history_add(struct memory_history *history, const struct aster_event *event)
{
    if (history->max == 0) {
        return;
    }
    pthread_mutex_lock(&history->mutex);
    history->revision++;
    bool full = history->count == history->max;
    struct memory_history_slot *slot = &history->slots[(history->first + history->count) % history->max];
    if (full) {
        slot = &history->slots[history->first];
        history->first = (history->first + 1) % history->max;
        history->count--;
    }
    if (fill(slot, event)) {
        slot->event.revision = history->revision;
        history->count++;
    }
    pthread_mutex_unlock(&history->mutex);
}

static bool matches(const struct aster_event *event, const struct aster_history_query *query)
{
    return event->revision > query->after_revision &&
           (query->resource.size == 0 || aster_bytes_equal(event->resource, query->resource));
}

/* Copy the newest matching events, newest first. */
static bool copy_matching(const struct memory_history *history, const struct aster_history_query *query,
                          struct memory_history_slot *copies, size_t *count)
{
    size_t limit = query->limit == 0 ? history->count : query->limit;
    for (size_t i = history->count; i > 0 && *count < limit; i--) {
        const struct aster_event *event = &history->slots[(history->first + i - 1) % history->max].event;
        if (!matches(event, query)) {
            continue;
        }
        if (!fill(&copies[*count], event)) {
            return false;
        }
        (*count)++;
    }
    return true;
}

aster_status aster_memory_history_visit(struct memory_history *history, const struct aster_history_query *query,
                                        aster_visit_event visit, void *user, struct aster_error *error)
{
    size_t count = 0;
    if (history->max == 0) {
        return ASTER_OK;
    }
    struct memory_history_slot *copies = calloc(history->max, sizeof copies[0]);
    bool copied = false;
    if (copies != NULL) {
        pthread_mutex_lock(&history->mutex);
        copied = copy_matching(history, query, copies, &count);
        pthread_mutex_unlock(&history->mutex);
    }
    for (size_t i = count; copied && i > 0; i--) {
        if (!visit(&copies[i - 1].event, user)) {
            break;
        }
    }
    if (copies != NULL) {
        free_slots(copies, history->max);
    }
    return copied ? ASTER_OK
                  : aster_error_set(error, ASTER_ERR_NOMEM, "no memory to copy a history of %zu events", history->max);
}
