#include "serializer/sqlite/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define BLOCK_SIZE 65536

struct aster_arena_block {
    struct aster_arena_block *next;
    size_t size;
    alignas(max_align_t) unsigned char data[];
};

void *aster_arena_take(struct aster_arena *arena, size_t size)
{
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (arena->blocks == NULL || arena->blocks->size - arena->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        struct aster_arena_block *block = malloc(sizeof *block + room);
        if (block == NULL) {
            return NULL;
        }
        block->next = arena->blocks;
        block->size = room;
        arena->blocks = block;
        arena->used = 0;
    }
    void *taken = arena->blocks->data + arena->used;
    arena->used += size;
    return taken;
}

int aster_arena_copy(struct aster_arena *arena, struct aster_bytes bytes, struct aster_bytes *copy)
{
    if (bytes.size == 0) {
        *copy = (struct aster_bytes){NULL, 0};
        return 1;
    }
    void *data = aster_arena_take(arena, bytes.size);
    if (data == NULL) {
        return 0;
    }
    memcpy(data, bytes.data, bytes.size);
    *copy = (struct aster_bytes){data, bytes.size};
    return 1;
}

void aster_arena_reset(struct aster_arena *arena)
{
    while (arena->blocks != NULL && (arena->blocks->next != NULL || arena->blocks->size > BLOCK_SIZE)) {
        struct aster_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    arena->used = 0;
}

void aster_arena_fini(struct aster_arena *arena)
{
    while (arena->blocks != NULL) {
        struct aster_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    arena->used = 0;
}
