#include "wire/frame.h"

#include <stdint.h>

void aster_frame_header(unsigned char header[ASTER_FRAME_HEADER_SIZE], size_t payload_size)
{
    header[0] = (unsigned char)(payload_size >> 24);
    header[1] = (unsigned char)(payload_size >> 16);
    header[2] = (unsigned char)(payload_size >> 8);
    header[3] = (unsigned char)payload_size;
}

static size_t announced(const unsigned char *header)
{
    return (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 | (size_t)header[3];
}

void aster_frame_reader_init(struct aster_frame_reader *reader, size_t payload_max)
{
    if (payload_max == 0 || payload_max > ASTER_FRAME_PAYLOAD_MAX) {
        payload_max = ASTER_FRAME_PAYLOAD_MAX;
    }
    *reader = (struct aster_frame_reader){.payload_max = payload_max};
}

void aster_frame_reader_supply(struct aster_frame_reader *reader, unsigned char *buffer, size_t capacity)
{
    reader->buffer = buffer;
    reader->capacity = capacity;
}

static void skip(struct aster_bytes *input, size_t count)
{
    input->data = (const unsigned char *)input->data + count;
    input->size -= count;
}

static enum aster_frame_step check_size(const struct aster_frame_reader *reader, size_t size, size_t *needed)
{
    if (size > reader->payload_max) {
        *needed = size;
        return ASTER_FRAME_TOO_LARGE;
    }
    return size == 0 ? ASTER_FRAME_EMPTY : ASTER_FRAME_READY;
}

/* Doubling keeps the number of copies logarithmic without trusting the announced size. */
static size_t grown(size_t least, size_t whole)
{
    size_t size = 512;
    while (size < least) {
        size *= 2;
    }
    return size < whole ? size : whole;
}

/* The frame began in an earlier piece of input, or its end is not in this one. */
static enum aster_frame_step gather(struct aster_frame_reader *reader, struct aster_bytes *input,
                                    struct aster_bytes *payload, size_t *needed)
{
    while (reader->filled < ASTER_FRAME_HEADER_SIZE && input->size > 0) {
        reader->head[reader->filled++] = *(const unsigned char *)input->data;
        skip(input, 1);
    }
    if (reader->filled < ASTER_FRAME_HEADER_SIZE) {
        return ASTER_FRAME_NONE;
    }
    size_t size = announced(reader->head);
    enum aster_frame_step step = check_size(reader, size, needed);
    if (step != ASTER_FRAME_READY) {
        return step;
    }
    size_t have = reader->filled - ASTER_FRAME_HEADER_SIZE;
    size_t take = input->size < size - have ? input->size : size - have;
    if (take > 0 && have + take > reader->capacity) {
        *needed = grown(have + take, size);
        return ASTER_FRAME_GROW;
    }
    if (take > 0) {
        memcpy(reader->buffer + have, input->data, take);
        skip(input, take);
        reader->filled += take;
    }
    if (have + take < size) {
        return ASTER_FRAME_NONE;
    }
    reader->filled = 0;
    *payload = (struct aster_bytes){reader->buffer, size};
    return ASTER_FRAME_READY;
}

enum aster_frame_step aster_frame_reader_next(struct aster_frame_reader *reader, struct aster_bytes *input,
                                              struct aster_bytes *payload, size_t *needed)
{
    if (reader->filled == 0 && input->size >= ASTER_FRAME_HEADER_SIZE) {
        size_t size = announced(input->data);
        enum aster_frame_step step = check_size(reader, size, needed);
        if (step != ASTER_FRAME_READY) {
            return step;
        }
        if (input->size - ASTER_FRAME_HEADER_SIZE >= size) {
            *payload = (struct aster_bytes){(const unsigned char *)input->data + ASTER_FRAME_HEADER_SIZE, size};
            skip(input, ASTER_FRAME_HEADER_SIZE + size);
            return ASTER_FRAME_READY;
        }
    }
    return gather(reader, input, payload, needed);
}
