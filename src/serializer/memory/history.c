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

static void add(struct memory_history *history, const struct aster_event *event)
{
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
}

void aster_memory_history_add(struct memory_history *history, const struct aster_event *event)
{
    if (history->max > 0) {
        pthread_mutex_lock(&history->mutex);
        history->revision++;
        add(history, event);
        pthread_mutex_unlock(&history->mutex);
    }
}

void aster_memory_history_restore(struct memory_history *history, const struct aster_event *event)
{
    if (history->max > 0) {
        pthread_mutex_lock(&history->mutex);
        history->revision = event->revision;
        add(history, event);
        pthread_mutex_unlock(&history->mutex);
    }
}

/* The most that can match: a reader who follows asks often, and for little. */
static size_t newest_max(const struct memory_history *history, const struct aster_history_query *query)
{
    int64_t newer = history->revision > query->after_revision ? history->revision - query->after_revision : 0;
    size_t count = (uint64_t)newer < history->count ? (size_t)newer : history->count;
    return query->limit > 0 && query->limit < count ? query->limit : count;
}

/* Copy the newest matching events, newest first. */
static bool copy_matching(const struct memory_history *history, const struct aster_history_query *query,
                          struct memory_history_slot *copies, size_t max, size_t *count)
{
    for (size_t i = history->count; i > 0 && *count < max; i--) {
        const struct aster_event *event = &history->slots[(history->first + i - 1) % history->max].event;
        if (event->revision <= query->after_revision) {
            break; /* they ascend */
        }
        if (query->resource.size > 0 && !aster_bytes_equal(event->resource, query->resource)) {
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
    bool copied = false;
    pthread_mutex_lock(&history->mutex);
    size_t max = newest_max(history, query);
    struct memory_history_slot *copies = calloc(max > 0 ? max : 1, sizeof copies[0]);
    if (copies != NULL) {
        copied = copy_matching(history, query, copies, max, &count);
    }
    pthread_mutex_unlock(&history->mutex);
    for (size_t i = count; copied && i > 0; i--) {
        if (!visit(&copies[i - 1].event, user)) {
            break;
        }
    }
    if (copies != NULL) {
        free_slots(copies, count);
    }
    return copied ? ASTER_OK
                  : aster_error_set(error, ASTER_ERR_NOMEM, "no memory to copy a history of %zu events", max);
}
