#include "serializer/memory/history.h"

#include <stdlib.h>

#include "base/error.h"

/* An event without views: with many of them, each byte counts. Names are at most a few hundred bytes each. */
struct memory_history_slot {
    int64_t revision;
    int64_t unix_ms;
    int64_t epoch;
    int64_t carried_epoch;
    char *bytes; /* resource, actor, previous */
    uint16_t capacity;
    uint16_t resource_size;
    uint16_t actor_size;
    uint16_t previous_size;
    uint8_t kind;
    uint8_t reason;
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

static char *copy_in(struct aster_bytes bytes, char *to)
{
    if (bytes.size > 0) {
        memcpy(to, bytes.data, bytes.size);
    }
    return to + bytes.size;
}

static bool fill(struct memory_history_slot *slot, const struct aster_event *event)
{
    size_t size = event->resource.size + event->actor.size + event->previous.size;
    if (size > UINT16_MAX) {
        return false; /* no valid names are that long */
    }
    if (size > slot->capacity || slot->bytes == NULL) {
        char *bytes = realloc(slot->bytes, size > 0 ? size : 1);
        if (bytes == NULL) {
            return false;
        }
        slot->bytes = bytes;
        slot->capacity = (uint16_t)size;
    }
    slot->revision = event->revision;
    slot->unix_ms = event->unix_ms;
    slot->epoch = event->epoch;
    slot->carried_epoch = event->carried_epoch;
    slot->kind = (uint8_t)event->kind;
    slot->reason = (uint8_t)event->reason;
    slot->resource_size = (uint16_t)event->resource.size;
    slot->actor_size = (uint16_t)event->actor.size;
    slot->previous_size = (uint16_t)event->previous.size;
    copy_in(event->previous, copy_in(event->actor, copy_in(event->resource, slot->bytes)));
    return true;
}

/* Its views borrow from the slot. */
static struct aster_event event_of(const struct memory_history_slot *slot)
{
    const char *actor = slot->bytes + slot->resource_size;
    return (struct aster_event){.revision = slot->revision,
                                .unix_ms = slot->unix_ms,
                                .kind = (enum aster_event_kind)slot->kind,
                                .reason = (enum aster_reason)slot->reason,
                                .resource = {slot->bytes, slot->resource_size},
                                .actor = {actor, slot->actor_size},
                                .previous = {actor + slot->actor_size, slot->previous_size},
                                .epoch = slot->epoch,
                                .carried_epoch = slot->carried_epoch};
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
        slot->revision = history->revision;
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
        const struct aster_event event = event_of(&history->slots[(history->first + i - 1) % history->max]);
        if (event.revision <= query->after_revision) {
            break; /* they ascend */
        }
        if (query->resource.size > 0 && !aster_bytes_equal(event.resource, query->resource)) {
            continue;
        }
        if (!fill(&copies[*count], &event)) {
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
        const struct aster_event event = event_of(&copies[i - 1]);
        if (!visit(&event, user)) {
            break;
        }
    }
    if (copies != NULL) {
        free_slots(copies, count);
    }
    return copied ? ASTER_OK
                  : aster_error_set(error, ASTER_ERR_NOMEM, "no memory to copy a history of %zu events", max);
}
