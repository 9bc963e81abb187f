#include "quic/send_queue.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

#define CHUNK_SMALL 1000 /* most links hold one request or reply at a time */
#define CHUNK_LARGE 16000

struct aster_send_chunk {
    struct aster_send_chunk *next;
    size_t size;
    size_t capacity;
    unsigned char data[];
};

static struct aster_send_chunk *chunk_create(size_t wanted)
{
    size_t capacity = wanted <= CHUNK_SMALL ? CHUNK_SMALL : CHUNK_LARGE;
    struct aster_send_chunk *chunk = aster_alloc(sizeof *chunk + capacity);
    if (chunk != NULL) {
        *chunk = (struct aster_send_chunk){NULL, 0, capacity};
    }
    return chunk;
}

/* Chunks for `size` bytes beyond what the last one still holds, as a chain; *enough tells whether there was memory. */
static struct aster_send_chunk *chain_create(size_t size, bool *enough)
{
    struct aster_send_chunk *chain = NULL;
    struct aster_send_chunk **end = &chain;
    while (size > 0) {
        *end = chunk_create(size);
        if (*end == NULL) {
            while (chain != NULL) {
                struct aster_send_chunk *next = chain->next;
                free(chain);
                chain = next;
            }
            *enough = false;
            return NULL;
        }
        size -= size < (*end)->capacity ? size : (*end)->capacity;
        end = &(*end)->next;
    }
    *enough = true;
    return chain;
}

static void put(struct aster_send_chunk **at, struct aster_bytes bytes)
{
    const unsigned char *data = bytes.data;
    size_t left = bytes.size;
    while (left > 0) {
        if ((*at)->size == (*at)->capacity) {
            *at = (*at)->next;
        }
        size_t room = (*at)->capacity - (*at)->size;
        size_t take = left < room ? left : room;
        memcpy((*at)->data + (*at)->size, data, take);
        (*at)->size += take;
        data += take;
        left -= take;
    }
}

aster_status aster_send_queue_append(struct aster_send_queue *queue, struct aster_bytes head, struct aster_bytes body,
                                     struct aster_error *error)
{
    size_t total = head.size + body.size;
    size_t room = queue->last != NULL ? queue->last->capacity - queue->last->size : 0;
    bool enough = true;
    if (total == 0) {
        return ASTER_OK;
    }
    struct aster_send_chunk *chain = total > room ? chain_create(total - room, &enough) : NULL;
    if (!enough) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory to send %zu bytes", total);
    }
    if (queue->last != NULL) {
        queue->last->next = chain;
    } else {
        queue->first = queue->last = chain;
    }
    if (queue->unsent == 0) {
        /* A cursor at a chunk's end moves on by itself, see skip_full(). */
        queue->cursor = queue->last;
        queue->cursor_offset = queue->last->size;
    }
    struct aster_send_chunk *at = queue->last;
    put(&at, head);
    put(&at, body);
    while (at->next != NULL) {
        at = at->next;
    }
    queue->last = at;
    queue->size += total;
    queue->unsent += total;
    return ASTER_OK;
}

size_t aster_send_queue_unsent(const struct aster_send_queue *queue, struct iovec *pieces, size_t max)
{
    size_t count = 0;
    size_t offset = queue->cursor_offset;
    if (queue->unsent == 0) {
        return 0;
    }
    for (struct aster_send_chunk *chunk = queue->cursor; chunk != NULL && count < max; chunk = chunk->next) {
        if (chunk->size > offset) {
            pieces[count++] = (struct iovec){chunk->data + offset, chunk->size - offset};
        }
        offset = 0;
    }
    return count;
}

void aster_send_queue_mark_sent(struct aster_send_queue *queue, size_t size)
{
    queue->unsent -= size;
    while (size > 0) {
        size_t here = queue->cursor->size - queue->cursor_offset;
        if (size < here || (size == here && queue->cursor->next == NULL)) {
            queue->cursor_offset += size;
            return;
        }
        size -= here;
        queue->cursor = queue->cursor->next;
        queue->cursor_offset = 0;
    }
}

void aster_send_queue_release(struct aster_send_queue *queue, size_t size)
{
    queue->size -= size;
    queue->acknowledged_in_first += size;
    while (queue->first != NULL && queue->acknowledged_in_first >= queue->first->size) {
        struct aster_send_chunk *done = queue->first;
        queue->acknowledged_in_first -= done->size;
        if (done == queue->last) {
            /* Everything is acknowledged: the chunk is used again. */
            if (queue->size == 0 && done->capacity == CHUNK_SMALL) {
                done->size = 0;
                queue->cursor_offset = 0;
                return;
            }
            queue->last = queue->cursor = NULL;
        } else if (queue->cursor == done) {
            queue->cursor = done->next;
            queue->cursor_offset = 0;
        }
        queue->first = done->next;
        free(done);
    }
}

void aster_send_queue_fini(struct aster_send_queue *queue)
{
    while (queue->first != NULL) {
        struct aster_send_chunk *next = queue->first->next;
        free(queue->first);
        queue->first = next;
    }
    *queue = (struct aster_send_queue){NULL, NULL, NULL, 0, 0, 0, 0};
}
