/* For peers that speak over TCP sockets of their own. */
#ifndef BENCH_SOCKETS_H
#define BENCH_SOCKETS_H

#include "driver.h"

struct buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
    size_t taken; /* of `size`, consumed */
};

/* To 127.0.0.1; non-blocking, without Nagle's delay. -1 on failure. */
int socket_connect(int port);
/* PENDING, or ERROR. */
enum outcome socket_send(int fd, const void *data, size_t size);

/* Read what is there: 1, 0 = nothing, -1 = closed. */
int buffer_fill(struct buffer *buffer, int fd);
void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_take(struct buffer *buffer, size_t size);

#endif
