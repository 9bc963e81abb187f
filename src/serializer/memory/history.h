/* The bounded audit history: a ring whose slots keep their memory. Thread-safe by its own lock. */
#ifndef MEMORY_HISTORY_H
#define MEMORY_HISTORY_H

#include <pthread.h>

#include "aster/serializer.h"

struct memory_history {
    pthread_mutex_t mutex;
    struct memory_history_slot *slots;
    size_t max;
    size_t first; /* the oldest */
    size_t count;
    int64_t revision;
};

aster_status aster_memory_history_init(struct memory_history *history, size_t max, struct aster_error *error);
void aster_memory_history_fini(struct memory_history *history);

/* Copy `event` in, give it the next revision and drop the oldest when full. An event that finds no memory is missing
 * from the history; its revision shows the gap. */
void aster_memory_history_add(struct memory_history *history, const struct aster_event *event);

/* The same for an event that has its revision, greater than those before it. */
void aster_memory_history_restore(struct memory_history *history, const struct aster_event *event);

/* As aster_history(). Works on a copy, so the visitor runs without a lock. */
aster_status aster_memory_history_visit(struct memory_history *history, const struct aster_history_query *query,
                                        aster_visit_event visit, void *user, struct aster_error *error);

#endif
