/* One-dimensional arrays in PostgreSQL's binary format, for the parameters of the statement that decides a batch. */
#ifndef POSTGRES_ARRAY_H
#define POSTGRES_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aster/bytes.h"

/* Element types; the numbers are PostgreSQL's and the same in every database. */
enum aster_pg_type {
    ASTER_PG_BYTEA = 17,
    ASTER_PG_BOOL = 16,
    ASTER_PG_INT8 = 20,
    ASTER_PG_TEXT = 25,
    ASTER_PG_UUID = 2950
};

struct aster_pg_array {
    char *bytes;
    size_t used;
    size_t capacity;
    uint32_t count;
    bool failed; /* out of memory; later calls do nothing */
};

/* Start anew, keeping the memory. */
void aster_pg_array_begin(struct aster_pg_array *array, enum aster_pg_type type);
void aster_pg_array_add_null(struct aster_pg_array *array);
void aster_pg_array_add_bytes(struct aster_pg_array *array, struct aster_bytes bytes); /* text, bytea, uuid */
void aster_pg_array_add_int8(struct aster_pg_array *array, int64_t value);
void aster_pg_array_add_bool(struct aster_pg_array *array, bool value);
/* After the last element. */
void aster_pg_array_end(struct aster_pg_array *array);
void aster_pg_array_fini(struct aster_pg_array *array);

#endif
