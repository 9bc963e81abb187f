/* Bounded reading and writing of little-endian fields. A cursor that ran over stays failed, so that callers check once
 * at the end; nothing outside the buffer is ever touched. */
#ifndef ENGINE_CURSOR_H
#define ENGINE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"

struct aster_writer {
    unsigned char *data;
    size_t size;
    size_t used;
    bool failed;
};

struct aster_reader {
    const unsigned char *data;
    size_t size;
    size_t used;
    bool failed;
};

void aster_write_integer(struct aster_writer *writer, uint64_t value, size_t width); /* width 1..8 bytes */
void aster_write_raw(struct aster_writer *writer, const void *data, size_t size);
void aster_write_bytes(struct aster_writer *writer, struct aster_bytes bytes); /* 32-bit length, then the bytes */
void aster_write_varint(struct aster_writer *writer,
                        uint64_t value); /* 7 bits a byte, the low ones first: 1..10 bytes */

uint64_t aster_read_integer(struct aster_reader *reader, size_t width); /* 0 once failed */
void aster_read_raw(struct aster_reader *reader, void *data, size_t size);
struct aster_bytes aster_read_bytes(struct aster_reader *reader); /* a view into the input; empty once failed */
struct aster_bytes aster_read_view(struct aster_reader *reader, uint64_t size); /* the same, of a known size */
uint64_t aster_read_varint(struct aster_reader *reader); /* fails on more bytes than the value needs; 0 once failed */

#endif
