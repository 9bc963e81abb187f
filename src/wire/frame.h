/* Frames: a length of 4 bytes, big-endian, and that many bytes of payload. Pure: no allocation, no I/O. */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include "aster/bytes.h"

#define ASTER_FRAME_HEADER_SIZE 4
#define ASTER_FRAME_PAYLOAD_MAX 131072 /* bytes; a value, two names and what surrounds them fit twice */

/* Write the header of a frame with `payload_size` bytes, 1..ASTER_FRAME_PAYLOAD_MAX. */
void aster_frame_header(unsigned char header[ASTER_FRAME_HEADER_SIZE], size_t payload_size);

enum aster_frame_step {
    ASTER_FRAME_NONE = 0,      /* all input is taken, no frame is complete */
    ASTER_FRAME_READY = 1,     /* one payload; call again for more */
    ASTER_FRAME_GROW = 2,      /* supply a buffer of *needed bytes or more, then call again */
    ASTER_FRAME_TOO_LARGE = 3, /* *needed is the announced size; the stream is unusable */
    ASTER_FRAME_EMPTY = 4      /* a frame without payload; the stream is unusable */
};

/* Takes a stream of bytes apart. The memory is the caller's; it is asked for as bytes arrive, never because a header
 * announces them, so a peer costs no more than twice what it has sent. One thread at a time. */
struct aster_frame_reader {
    unsigned char *buffer; /* the caller's; may be NULL */
    size_t capacity;
    size_t filled;      /* bytes of an incomplete frame, header included, in `head` and `buffer` */
    size_t payload_max; /* announced sizes above it are refused before anything is kept */
    unsigned char head[ASTER_FRAME_HEADER_SIZE];
};

/* payload_max is cut to ASTER_FRAME_PAYLOAD_MAX; 0 means that. */
void aster_frame_reader_init(struct aster_frame_reader *reader, size_t payload_max);

/* Give a larger buffer, into which the caller has copied the old one's content (realloc does). */
void aster_frame_reader_supply(struct aster_frame_reader *reader, unsigned char *buffer, size_t capacity);

/* Take bytes from the front of *input, advancing it. READY: *payload borrows from the input or from the buffer and
 * lives until the next call. After TOO_LARGE or EMPTY only init is legal. */
enum aster_frame_step aster_frame_reader_next(struct aster_frame_reader *reader, struct aster_bytes *input,
                                              struct aster_bytes *payload, size_t *needed);

#endif
