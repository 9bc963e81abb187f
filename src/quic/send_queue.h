/* Bytes on their way to a peer, kept until they are acknowledged. They never move in memory, because ngtcp2 points into
 * them. One thread. */
#ifndef QUIC_SEND_QUEUE_H
#define QUIC_SEND_QUEUE_H

#include <stdint.h>
#include <sys/uio.h>

#include "aster/bytes.h"
#include "aster/status.h"

struct aster_send_chunk;

struct aster_send_queue {
    struct aster_send_chunk *first; /* oldest that is not fully acknowledged */
    struct aster_send_chunk *last;
    struct aster_send_chunk *cursor; /* where the unsent part begins, NULL when nothing is unsent */
    size_t cursor_offset;
    size_t acknowledged_in_first;
    size_t size;   /* bytes held */
    size_t unsent; /* of them not sent */
};

/* Errors: ASTER_ERR_NOMEM, with nothing appended. */
aster_status aster_send_queue_append(struct aster_send_queue *queue, struct aster_bytes head, struct aster_bytes body,
                                     struct aster_error *error);
/* Up to `max` pieces of the unsent bytes, in order. Returns how many. */
size_t aster_send_queue_unsent(const struct aster_send_queue *queue, struct iovec *pieces, size_t max);
void aster_send_queue_mark_sent(struct aster_send_queue *queue, size_t size);
/* The oldest `size` bytes, which were sent, are no longer needed. */
void aster_send_queue_release(struct aster_send_queue *queue, size_t size);
void aster_send_queue_fini(struct aster_send_queue *queue);

#endif
