#include "serializer/postgres/array.h"

#include <stdlib.h>

#define HEADER_SIZE 20 /* dimensions, has nulls, element type, length, lower bound */
#define COUNT_AT 12

static void put_u32(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(value >> (24 - 8 * i));
    }
}

static char *grow(struct aster_pg_array *array, size_t size)
{
    if (array->used + size > array->capacity) {
        size_t capacity = (array->used + size) * 2;
        char *bytes = array->failed ? NULL : realloc(array->bytes, capacity);
        if (bytes == NULL) {
            array->failed = true;
            return NULL;
        }
        array->bytes = bytes;
        array->capacity = capacity;
    }
    char *at = array->bytes + array->used;
    array->used += size;
    return at;
}

void aster_pg_array_begin(struct aster_pg_array *array, enum aster_pg_type type)
{
    array->used = 0;
    array->count = 0;
    array->failed = false;
    char *at = grow(array, HEADER_SIZE);
    if (at != NULL) {
        put_u32(at, 1);
        put_u32(at + 4, 1);
        put_u32(at + 8, (uint32_t)type);
        put_u32(at + 16, 1);
    }
}

/* Room for an element of that size, behind its length. */
static char *add(struct aster_pg_array *array, size_t size)
{
    char *at = grow(array, 4 + size);
    if (at == NULL) {
        return NULL;
    }
    put_u32(at, (uint32_t)size);
    array->count++;
    return at + 4;
}

void aster_pg_array_add_null(struct aster_pg_array *array)
{
    char *at = grow(array, 4);
    if (at != NULL) {
        put_u32(at, UINT32_MAX);
        array->count++;
    }
}

void aster_pg_array_add_bytes(struct aster_pg_array *array, struct aster_bytes bytes)
{
    char *at = add(array, bytes.size);
    if (at != NULL && bytes.size > 0) {
        memcpy(at, bytes.data, bytes.size);
    }
}

void aster_pg_array_add_int8(struct aster_pg_array *array, int64_t value)
{
    char *at = add(array, 8);
    if (at != NULL) {
        put_u32(at, (uint32_t)((uint64_t)value >> 32));
        put_u32(at + 4, (uint32_t)(uint64_t)value);
    }
}

void aster_pg_array_add_bool(struct aster_pg_array *array, bool value)
{
    char *at = add(array, 1);
    if (at != NULL) {
        *at = value ? 1 : 0;
    }
}

void aster_pg_array_end(struct aster_pg_array *array)
{
    if (!array->failed) {
        put_u32(array->bytes + COUNT_AT, array->count);
    }
}

void aster_pg_array_fini(struct aster_pg_array *array)
{
    free(array->bytes);
    *array = (struct aster_pg_array){0};
}
