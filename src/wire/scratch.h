/* A fixed piece of the caller's memory that one message is taken apart in. What does not fit is refused, so that the
 * cost of any message is bounded. Not thread-safe; one per thread is enough, because a message is used up before the
 * next. */
#ifndef WIRE_SCRATCH_H
#define WIRE_SCRATCH_H

#include <stddef.h>

/* Enough for every message that obeys the limits of the .proto: 1,024 renewals with 512-byte names. */
#define ASTER_SCRATCH_SIZE 1572864

struct aster_scratch {
    unsigned char *data; /* the caller's; aligned for any type */
    size_t size;
    size_t used;
};

/* `size` bytes aligned for any type, or NULL when it is full. */
void *aster_scratch_take(struct aster_scratch *scratch, size_t size);

#endif
