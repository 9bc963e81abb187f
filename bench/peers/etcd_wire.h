/* What an etcd client needs of protobuf, gRPC and HTTP/2, without header compression: cheap for the client, so that
 * the server's time is what is measured. */
#ifndef BENCH_ETCD_WIRE_H
#define BENCH_ETCD_WIRE_H

#include <stdbool.h>

#include "sockets.h"

/* A protobuf message that is being written. */
struct message {
    unsigned char data[2048];
    size_t size;
};

void put_varint(struct message *message, uint64_t value);
void put_int(struct message *message, int field, int64_t value); /* nothing for 0 */
void put_int_always(struct message *message, int field, int64_t value);
void put_text(struct message *message, int field, const char *text);
void put_message(struct message *message, int field, const struct message *inner);

/* Fields of one that is being read. */
struct fields {
    const unsigned char *at;
    const unsigned char *end;
    int number;
    bool is_bytes;
    uint64_t value;
    const unsigned char *data;
    size_t size;
};

bool next_field(struct fields *fields);
struct fields inner_fields(const struct fields *fields);

/* HTTP/2. */
enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RESET = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW = 8
};
#define FRAME_HEADER_SIZE 9
#define FRAME_END_STREAM 1

void frame_head(unsigned char *out, size_t size, enum frame_type type, int flags, uint32_t stream);
enum outcome send_preface(int fd);
enum outcome send_ack(int fd, enum frame_type type, const unsigned char *data, size_t size);
enum outcome send_window(int fd, uint32_t bytes);
/* A gRPC request: the headers when `path` is given, and one message. */
enum outcome send_grpc(int fd, const char *path, const struct message *message, uint32_t stream, bool last);
/* A complete gRPC message at the front of the buffer is taken out. */
bool take_grpc(struct buffer *buffer, struct fields *fields);

#endif
