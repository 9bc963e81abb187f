#include "etcd_wire.h"

#include <string.h>

#define GRPC_PREFIX 5
#define WINDOW_MORE 0x7fff0000u

void put_varint(struct message *message, uint64_t value)
{
    while (value > 127) {
        message->data[message->size++] = (unsigned char)(value | 128);
        value >>= 7;
    }
    message->data[message->size++] = (unsigned char)value;
}

void put_int_always(struct message *message, int field, int64_t value)
{
    put_varint(message, (uint64_t)field << 3);
    put_varint(message, (uint64_t)value);
}

void put_int(struct message *message, int field, int64_t value)
{
    if (value != 0) {
        put_int_always(message, field, value);
    }
}

static void put_bytes(struct message *message, int field, const void *data, size_t size)
{
    put_varint(message, (uint64_t)field << 3 | 2);
    put_varint(message, size);
    memcpy(message->data + message->size, data, size);
    message->size += size;
}

void put_text(struct message *message, int field, const char *text)
{
    put_bytes(message, field, text, strlen(text));
}

void put_message(struct message *message, int field, const struct message *inner)
{
    put_bytes(message, field, inner->data, inner->size);
}

static uint64_t take_varint(struct fields *fields)
{
    uint64_t value = 0;
    for (unsigned shift = 0; fields->at < fields->end && shift < 64; shift += 7) {
        unsigned char byte = *fields->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            break;
        }
    }
    return value;
}

bool next_field(struct fields *fields)
{
    if (fields->at >= fields->end) {
        return false;
    }
    uint64_t key = take_varint(fields);
    fields->number = (int)(key >> 3);
    fields->is_bytes = (key & 7) == 2;
    if ((key & 7) == 0) {
        fields->value = take_varint(fields);
        return true;
    }
    fields->size = fields->is_bytes ? take_varint(fields) : SIZE_MAX;
    if (fields->size > (size_t)(fields->end - fields->at)) {
        return false;
    }
    fields->data = fields->at;
    fields->at += fields->size;
    return true;
}

struct fields inner_fields(const struct fields *fields)
{
    return (struct fields){.at = fields->data, .end = fields->data + fields->size};
}

static void put_number(unsigned char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

void frame_head(unsigned char *out, size_t size, enum frame_type type, int flags, uint32_t stream)
{
    out[0] = (unsigned char)(size >> 16);
    out[1] = (unsigned char)(size >> 8);
    out[2] = (unsigned char)size;
    out[3] = (unsigned char)type;
    out[4] = (unsigned char)flags;
    put_number(out + 5, stream);
}

enum outcome send_preface(int fd)
{
    static const char magic[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    unsigned char out[128];
    size_t size = sizeof magic - 1;
    memcpy(out, magic, size);
    frame_head(out + size, 6, FRAME_SETTINGS, 0, 0);
    memcpy(out + size + FRAME_HEADER_SIZE, "\0\4\x7f\xff\xff\xff", 6); /* the largest window for each stream */
    size += FRAME_HEADER_SIZE + 6;
    frame_head(out + size, 4, FRAME_WINDOW, 0, 0);
    put_number(out + size + FRAME_HEADER_SIZE, WINDOW_MORE);
    return socket_send(fd, out, size + FRAME_HEADER_SIZE + 4);
}

enum outcome send_ack(int fd, enum frame_type type, const unsigned char *data, size_t size)
{
    unsigned char out[FRAME_HEADER_SIZE + 8];
    frame_head(out, size, type, 1, 0);
    if (size > 0) {
        memcpy(out + FRAME_HEADER_SIZE, data, size);
    }
    return socket_send(fd, out, FRAME_HEADER_SIZE + size);
}

enum outcome send_window(int fd, uint32_t bytes)
{
    unsigned char out[FRAME_HEADER_SIZE + 4];
    frame_head(out, 4, FRAME_WINDOW, 0, 0);
    put_number(out + FRAME_HEADER_SIZE, bytes);
    return socket_send(fd, out, sizeof out);
}

static size_t put_header_text(unsigned char *out, const char *text)
{
    size_t size = strlen(text); /* always below 127 here */
    out[0] = (unsigned char)size;
    memcpy(out + 1, text, size);
    return size + 1;
}

static size_t put_headers(unsigned char *out, const char *path, uint32_t stream)
{
    unsigned char *block = out + FRAME_HEADER_SIZE;
    size_t size = 0;
    block[size++] = 0x83; /* :method POST */
    block[size++] = 0x86; /* :scheme http */
    block[size++] = 0x04; /* :path */
    size += put_header_text(block + size, path);
    block[size++] = 0x01; /* :authority */
    size += put_header_text(block + size, "127.0.0.1");
    block[size++] = 0x0f; /* content-type */
    block[size++] = 0x10;
    size += put_header_text(block + size, "application/grpc");
    block[size++] = 0x00;
    size += put_header_text(block + size, "te");
    size += put_header_text(block + size, "trailers");
    frame_head(out, size, FRAME_HEADERS, 4, stream);
    return FRAME_HEADER_SIZE + size;
}

enum outcome send_grpc(int fd, const char *path, const struct message *message, uint32_t stream, bool last)
{
    unsigned char out[4096];
    size_t size = path != NULL ? put_headers(out, path, stream) : 0;
    frame_head(out + size, GRPC_PREFIX + message->size, FRAME_DATA, last ? FRAME_END_STREAM : 0, stream);
    size += FRAME_HEADER_SIZE;
    out[size] = 0; /* not compressed */
    put_number(out + size + 1, (uint32_t)message->size);
    memcpy(out + size + GRPC_PREFIX, message->data, message->size);
    return socket_send(fd, out, size + GRPC_PREFIX + message->size);
}

bool take_grpc(struct buffer *buffer, struct fields *fields)
{
    const unsigned char *at = buffer->data + buffer->taken;
    size_t left = buffer->size - buffer->taken;
    if (left < GRPC_PREFIX) {
        return false;
    }
    size_t size = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    if (left < GRPC_PREFIX + size) {
        return false;
    }
    *fields = (struct fields){.at = at + GRPC_PREFIX, .end = at + GRPC_PREFIX + size};
    buffer_take(buffer, GRPC_PREFIX + size);
    return true;
}
