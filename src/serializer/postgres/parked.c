#include "serializer/postgres/parked.h"

#include <stdlib.h>

bool aster_pg_parked_add(struct aster_pg_parked *parked, struct aster_request *request, int64_t retry_ns)
{
    if (parked->count == parked->capacity) {
        size_t capacity = parked->capacity > 0 ? parked->capacity * 2 : 16;
        struct aster_pg_parked_entry *entries = realloc(parked->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            return false;
        }
        parked->entries = entries;
        parked->capacity = capacity;
    }
    parked->entries[parked->count++] = (struct aster_pg_parked_entry){request, retry_ns};
    return true;
}

static struct aster_request *take_at(struct aster_pg_parked *parked, size_t index)
{
    struct aster_request *request = parked->entries[index].request;
    parked->count--;
    memmove(&parked->entries[index], &parked->entries[index + 1], (parked->count - index) * sizeof parked->entries[0]);
    return request;
}

struct aster_request *aster_pg_parked_due(struct aster_pg_parked *parked, int64_t now_ns)
{
    for (size_t i = 0; i < parked->count; i++) {
        if (parked->entries[i].retry_ns <= now_ns) {
            return take_at(parked, i);
        }
    }
    return NULL;
}

int64_t aster_pg_parked_next_ns(const struct aster_pg_parked *parked)
{
    int64_t next_ns = INT64_MAX;
    for (size_t i = 0; i < parked->count; i++) {
        next_ns = parked->entries[i].retry_ns < next_ns ? parked->entries[i].retry_ns : next_ns;
    }
    return next_ns;
}

void aster_pg_parked_wake(struct aster_pg_parked *parked, struct aster_bytes resource)
{
    for (size_t i = 0; i < parked->count; i++) {
        if (aster_bytes_equal(parked->entries[i].request->operation.resource, resource)) {
            parked->entries[i].retry_ns = 0;
            return;
        }
    }
}

struct aster_request *aster_pg_parked_take(struct aster_pg_parked *parked, const struct aster_request *request)
{
    for (size_t i = 0; i < parked->count; i++) {
        if (request == NULL || parked->entries[i].request == request) {
            return take_at(parked, i);
        }
    }
    return NULL;
}

void aster_pg_parked_fini(struct aster_pg_parked *parked)
{
    free(parked->entries);
    *parked = (struct aster_pg_parked){NULL, 0, 0};
}
