#include "engine/cursor.h"

void aster_write_raw(struct aster_writer *writer, const void *data, size_t size)
{
    if (writer->failed || size > writer->size - writer->used) {
        writer->failed = true;
        return;
    }
    if (size > 0) {
        memcpy(writer->data + writer->used, data, size);
    }
    writer->used += size;
}

void aster_write_integer(struct aster_writer *writer, uint64_t value, size_t width)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < width; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    aster_write_raw(writer, bytes, width);
}

void aster_write_bytes(struct aster_writer *writer, struct aster_bytes bytes)
{
    aster_write_integer(writer, bytes.size, 4);
    aster_write_raw(writer, bytes.data, bytes.size);
}

void aster_write_varint(struct aster_writer *writer, uint64_t value)
{
    unsigned char bytes[10];
    size_t size = 0;
    for (; value > 0x7f; value >>= 7) {
        bytes[size++] = (unsigned char)(value | 0x80);
    }
    bytes[size++] = (unsigned char)value;
    aster_write_raw(writer, bytes, size);
}

static const unsigned char *take(struct aster_reader *reader, size_t size)
{
    if (reader->failed || size > reader->size - reader->used) {
        reader->failed = true;
        return NULL;
    }
    const unsigned char *at = reader->data + reader->used;
    reader->used += size;
    return at;
}

uint64_t aster_read_integer(struct aster_reader *reader, size_t width)
{
    const unsigned char *at = take(reader, width);
    uint64_t value = 0;
    for (size_t i = 0; at != NULL && i < width; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

void aster_read_raw(struct aster_reader *reader, void *data, size_t size)
{
    const unsigned char *at = take(reader, size);
    if (at != NULL) {
        memcpy(data, at, size);
    }
}

struct aster_bytes aster_read_bytes(struct aster_reader *reader)
{
    return aster_read_view(reader, aster_read_integer(reader, 4));
}

struct aster_bytes aster_read_view(struct aster_reader *reader, uint64_t size)
{
    const unsigned char *at = NULL;
    if (size > reader->size) {
        reader->failed = true;
    } else {
        at = take(reader, (size_t)size);
    }
    return at != NULL ? (struct aster_bytes){at, (size_t)size} : (struct aster_bytes){NULL, 0};
}

uint64_t aster_read_varint(struct aster_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = aster_read_integer(reader, 1);
        bool last = (byte & 0x80) == 0;
        bool shorter_exists = last && byte == 0 && shift > 0;
        bool too_large = shift == 63 && byte > 1;
        if (reader->failed || shorter_exists || too_large) {
            break;
        }
        value |= (byte & 0x7f) << shift;
        if (last) {
            return value;
        }
    }
    reader->failed = true;
    return 0;
}
