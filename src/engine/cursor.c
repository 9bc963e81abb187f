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
    size_t size = (size_t)aster_read_integer(reader, 4);
    const unsigned char *at = take(reader, size);
    return at != NULL ? (struct aster_bytes){at, size} : (struct aster_bytes){NULL, 0};
}
