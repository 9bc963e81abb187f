/* The rows are copied stripe by stripe, then shown in order without any lock: a visitor may take its time. */
#include <stdlib.h>

#include "base/error.h"
#include "serializer/memory/internal.h"

struct listing {
    const struct memory *memory;
    struct aster_bytes prefix;
    int64_t now_ns;
    struct aster_reply *rows;
    size_t count;
    size_t capacity;
    bool failed;
};

static bool grow(struct listing *listing)
{
    if (listing->count < listing->capacity) {
        return true;
    }
    size_t capacity = listing->capacity == 0 ? 64 : listing->capacity * 2;
    struct aster_reply *rows = realloc(listing->rows, capacity * sizeof rows[0]);
    if (rows == NULL) {
        return false;
    }
    listing->rows = rows;
    listing->capacity = capacity;
    return true;
}

static bool collect(const struct aster_snapshot *snapshot, int64_t since_ns, void *user)
{
    struct listing *listing = user;
    size_t size = listing->prefix.size;
    if (size > 0 &&
        (snapshot->resource.size < size || memcmp(snapshot->resource.data, listing->prefix.data, size) != 0)) {
        return true;
    }
    struct aster_decision decision = {.struct_size = sizeof decision, .snapshot = *snapshot};
    decision.snapshot.since_unix_ms = aster_memory_since_unix_ms(listing->memory, since_ns, listing->now_ns);
    struct aster_reply row = ASTER_REPLY_INIT;
    if (!grow(listing) || aster_reply_set(&row, &decision) != ASTER_OK) {
        listing->failed = true;
        return false;
    }
    listing->rows[listing->count++] = row;
    return true;
}

static int by_name(const void *left, const void *right)
{
    struct aster_bytes a = ((const struct aster_reply *)left)->decision.snapshot.resource;
    struct aster_bytes b = ((const struct aster_reply *)right)->decision.snapshot.resource;
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

aster_status aster_memory_list(void *self, struct aster_bytes prefix, aster_visit_row visit, void *user,
                               struct aster_error *error)
{
    struct memory *memory = self;
    struct listing listing = {.memory = memory, .prefix = prefix};
    for (size_t i = 0; i <= memory->stripe_mask && !listing.failed; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        aster_memory_stripe_lock(stripe);
        listing.now_ns = aster_clock_now_ns(&memory->clock);
        aster_table_visit(stripe->table, listing.now_ns, collect, &listing);
        aster_memory_stripe_unlock(memory, stripe);
    }
    if (!listing.failed && listing.count > 0) {
        qsort(listing.rows, listing.count, sizeof listing.rows[0], by_name);
    }
    bool more = !listing.failed;
    for (size_t i = 0; i < listing.count; i++) {
        more = more && visit(&listing.rows[i].decision.snapshot, user);
        aster_reply_fini(&listing.rows[i]);
    }
    free(listing.rows);
    return listing.failed
               ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory to list more than %zu rows", listing.count)
               : ASTER_OK;
}
