/* A first-in, first-out list of requests, linked through request->next. No lock of its own. */
#ifndef SERIALIZER_QUEUE_H
#define SERIALIZER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "aster/sys/serializer.h"

struct aster_queue {
    struct aster_request *first;
    struct aster_request **end; /* NULL in a zero queue */
};

static inline void aster_queue_push(struct aster_queue *queue, struct aster_request *request)
{
    request->next = NULL;
    if (queue->first == NULL) {
        queue->end = &queue->first;
    }
    *queue->end = request;
    queue->end = &request->next;
}

static inline struct aster_request *aster_queue_pop(struct aster_queue *queue)
{
    struct aster_request *request = queue->first;
    if (request != NULL) {
        queue->first = request->next;
    }
    return request;
}

/* Take out every request for which `match` holds, in order. */
static inline struct aster_queue aster_queue_take(struct aster_queue *queue,
                                                  bool (*match)(struct aster_request *request, const void *user),
                                                  const void *user)
{
    struct aster_queue taken = {NULL, NULL};
    struct aster_queue kept = {NULL, NULL};
    struct aster_request *request;
    while ((request = aster_queue_pop(queue)) != NULL) {
        aster_queue_push(match(request, user) ? &taken : &kept, request);
    }
    /* `end` may point into the struct itself, so the queue is not copied back. */
    queue->first = kept.first;
    queue->end = kept.first != NULL && kept.end != &kept.first ? kept.end : &queue->first;
    return (struct aster_queue){taken.first, NULL};
}

#endif
