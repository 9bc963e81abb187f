/* One object of an S3-compatible store, and the two requests that fencing it takes. */
#ifndef OBJECT_H
#define OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OBJECT_NAME_MAX 1537 /* every byte of a 512-byte name as %XX, and the NUL */

struct object_store {
    const char *url;         /* of the object: http(s)://host/bucket/key */
    const char *credentials; /* "KEY:SECRET", or NULL: requests are not signed */
    const char *region;
};

/* What is in the store's metadata of an object, and the version that it was read at. */
struct object_facts {
    bool exists;
    char etag[128];
    int64_t epoch;                /* 0 = published without a fence */
    char holder[OBJECT_NAME_MAX]; /* percent-encoded, as is the resource: a header carries no other bytes */
    char resource[OBJECT_NAME_MAX];
    char write_id[33];
};

enum object_answer {
    OBJECT_OK,
    OBJECT_CHANGED,  /* 412, or 404 for a version that is gone: somebody wrote since it was read */
    OBJECT_CONFLICT, /* 409: two conditional writes met; ask again */
    OBJECT_UNKNOWN,  /* no answer: it may have been written */
    OBJECT_FAILED    /* said on stderr */
};

enum object_answer object_look(const struct object_store *store, struct object_facts *facts);

/* Write `size` bytes of `body` with the metadata in `next`, if the object is still as `seen`. */
enum object_answer object_write(const struct object_store *store, const struct object_facts *seen,
                                const struct object_facts *next, FILE *body, int64_t size);

#endif
