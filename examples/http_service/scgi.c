#include "scgi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_all(int fd, char *to, size_t size)
{
    while (size > 0) {
        ssize_t got = read(fd, to, size);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        to += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* The length in front of the headers: digits and a colon. */
static bool read_length(int fd, size_t *length)
{
    char digit;
    *length = 0;
    for (int i = 0; i < 6 && read_all(fd, &digit, 1); i++) {
        if (digit == ':') {
            return i > 0;
        }
        if (digit < '0' || digit > '9') {
            return false;
        }
        *length = *length * 10 + (size_t)(digit - '0');
    }
    return false;
}

const char *scgi_get(const struct scgi_request *request, const char *name)
{
    const char *at = request->headers;
    const char *end = at + request->headers_size;
    while (at < end) {
        const char *value = at + strlen(at) + 1;
        if (value >= end) {
            return NULL;
        }
        if (strcmp(at, name) == 0) {
            return value;
        }
        at = value + strlen(value) + 1;
    }
    return NULL;
}

bool scgi_read(int fd, struct scgi_request *request)
{
    char comma;
    size_t length = 0;
    request->body = NULL;
    if (!read_length(fd, &length) || length == 0 || length > sizeof request->headers ||
        !read_all(fd, request->headers, length) || request->headers[length - 1] != '\0' || !read_all(fd, &comma, 1) ||
        comma != ',') {
        return false;
    }
    request->headers_size = length;
    const char *size = scgi_get(request, "CONTENT_LENGTH");
    request->body_size = size != NULL ? strtoul(size, NULL, 10) : 0;
    if (request->body_size > SCGI_BODY_MAX) {
        return false;
    }
    request->body = malloc(request->body_size + 1);
    return request->body != NULL && read_all(fd, request->body, request->body_size);
}

void scgi_free(struct scgi_request *request)
{
    free(request->body);
    request->body = NULL;
}

void scgi_answer(int fd, int status, const char *text, size_t size)
{
    char head[128];
    int length = snprintf(head, sizeof head, "Status: %d\r\nContent-Type: text/plain\r\n\r\n", status);
    if (write(fd, head, (size_t)length) < 0 || write(fd, text, size) < 0) {
        perror("cannot answer"); /* the client went away: its loss */
    }
}
