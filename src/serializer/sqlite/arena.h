/* Memory of one batch: many small pieces that live until all of its requests are answered, then go at once. */
#ifndef SQLITE_ARENA_H
#define SQLITE_ARENA_H

#include "aster/bytes.h"

struct aster_arena_block;

struct aster_arena {
    struct aster_arena_block *blocks;
    size_t used; /* of the first block */
};

/* `size` bytes, aligned for any object, or NULL. */
void *aster_arena_take(struct aster_arena *arena, size_t size);

/* Copy `bytes`; false when there is no memory. */
int aster_arena_copy(struct aster_arena *arena, struct aster_bytes bytes, struct aster_bytes *copy);

/* Give everything back but one block, for the next batch. */
void aster_arena_reset(struct aster_arena *arena);
void aster_arena_fini(struct aster_arena *arena);

#endif
