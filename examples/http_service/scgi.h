/* SCGI: how nginx hands a request to a program (scgi_pass). What nginx itself knows arrives under names of its own
 * choosing; what the client typed, under HTTP_..., so neither can be taken for the other. */
#ifndef SCGI_H
#define SCGI_H

#include <stdbool.h>
#include <stddef.h>

#define SCGI_HEADERS_MAX 16384
#define SCGI_BODY_MAX 1048576

struct scgi_request {
    char headers[SCGI_HEADERS_MAX]; /* NAME NUL VALUE NUL ... */
    size_t headers_size;
    char *body;
    size_t body_size;
};

/* Read one request; false when it is malformed, too large or cut short. scgi_free() either way. */
bool scgi_read(int fd, struct scgi_request *request);
void scgi_free(struct scgi_request *request);

/* The value of a header, or NULL. */
const char *scgi_get(const struct scgi_request *request, const char *name);

void scgi_answer(int fd, int status, const char *text, size_t size);

#endif
