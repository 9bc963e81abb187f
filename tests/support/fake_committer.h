/* The memory serializer with a committer that does nothing by itself: the test says what became durable and what
 * failed.
 */
#ifndef SUPPORT_FAKE_COMMITTER_H
#define SUPPORT_FAKE_COMMITTER_H

#include "serializer/memory/commit.h"

struct fake_committer {
    struct memory *memory;
    struct aster_serializer *serializer;
    struct memory_change *first; /* in the order of the decisions */
    struct memory_change **end;
    size_t count;
    int64_t revision;
    bool refuses; /* take() finds no memory */
};

void fake_committer_open(struct fake_committer *fake, const struct aster_clock *clock);
void fake_committer_close(struct fake_committer *fake); /* what is left becomes durable */

/* The oldest `count` changes are durable. */
void fake_committer_durable(struct fake_committer *fake, size_t count);
/* The append of the oldest `count` failed: everything is undone. */
void fake_committer_fail(struct fake_committer *fake, size_t count, aster_status status);

#endif
