/* Reading columns of a result in binary format. */
#ifndef POSTGRES_COLUMN_H
#define POSTGRES_COLUMN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"
#include "aster/fence.h"

/* The column's bytes, empty when it is NULL. They live as long as the result. */
static inline struct aster_bytes aster_pg_bytes(const PGresult *result, int row, int column)
{
    return (struct aster_bytes){PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column)};
}

/* A bigint, 0 when it is NULL or of another type. */
static inline int64_t aster_pg_int8(const PGresult *result, int row, int column)
{
    struct aster_bytes bytes = aster_pg_bytes(result, row, column);
    uint64_t value = 0;
    for (size_t i = 0; bytes.size == 8 && i < 8; i++) {
        value = value << 8 | ((const unsigned char *)bytes.data)[i];
    }
    return (int64_t)value;
}

static inline bool aster_pg_bool(const PGresult *result, int row, int column)
{
    struct aster_bytes bytes = aster_pg_bytes(result, row, column);
    return bytes.size == 1 && *(const char *)bytes.data != 0;
}

/* A reason's name as its number. False when there is no such reason. */
bool aster_pg_reason_read(struct aster_bytes name, enum aster_reason *reason);

/* "role/caller" of this connection's own role is the caller; anybody else is shown whole. */
struct aster_bytes aster_pg_strip_role(struct aster_bytes holder, const char *role);

#endif
