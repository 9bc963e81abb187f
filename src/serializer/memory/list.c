/* The rows are copied stripe by stripe, then shown in order without any lock: a visitor may take its time. Of a page
 * only its rows are kept, in a heap whose root is the greatest name so far. */
#include <stdlib.h>

#include "base/error.h"
#include "serializer/memory/internal.h"

#define ATTEMPTS_MAX 8

struct listing {
    const struct memory *memory;
    const struct aster_list_query *query;
    int64_t now_ns;
    struct aster_reply *rows;
    size_t count;
    size_t capacity;
    bool failed;
};

static struct aster_bytes name_of(const struct aster_reply *row)
{
    return row->decision.snapshot.resource;
}

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

static void rise(struct aster_reply *rows, size_t at)
{
    struct aster_reply row = rows[at];
    for (; at > 0 && aster_bytes_compare(name_of(&rows[(at - 1) / 2]), name_of(&row)) < 0; at = (at - 1) / 2) {
        rows[at] = rows[(at - 1) / 2];
    }
    rows[at] = row;
}

static void sink(struct aster_reply *rows, size_t count)
{
    struct aster_reply row = rows[0];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && aster_bytes_compare(name_of(&rows[child]), name_of(&rows[child + 1])) < 0;
        if (aster_bytes_compare(name_of(&rows[child]), name_of(&row)) <= 0) {
            break;
        }
        rows[at] = rows[child];
        at = child;
    }
    rows[at] = row;
}

static bool is_wanted(const struct listing *listing, struct aster_bytes name)
{
    const struct aster_list_query *query = listing->query;
    const struct aster_bytes start = {name.data, query->prefix.size};
    bool full = query->limit > 0 && listing->count == query->limit;
    return name.size >= start.size && aster_bytes_equal(start, query->prefix) &&
           aster_bytes_compare(name, query->after) > 0 &&
           (!full || aster_bytes_compare(name, name_of(&listing->rows[0])) < 0);
}

static void take(struct listing *listing, struct aster_reply row)
{
    size_t limit = listing->query->limit;
    if (limit > 0 && listing->count == limit) {
        aster_reply_fini(&listing->rows[0]);
        listing->rows[0] = row;
        sink(listing->rows, limit);
        return;
    }
    listing->rows[listing->count++] = row;
    if (limit > 0) {
        rise(listing->rows, listing->count - 1);
    }
}

static bool collect(const struct aster_snapshot *snapshot, int64_t since_ns, void *user)
{
    struct listing *listing = user;
    if (!is_wanted(listing, snapshot->resource)) {
        return true;
    }
    struct aster_decision decision = {.struct_size = sizeof decision, .snapshot = *snapshot};
    decision.snapshot.since_unix_ms = aster_memory_since_unix_ms(listing->memory, since_ns, listing->now_ns);
    struct aster_reply row = ASTER_REPLY_INIT;
    if (!grow(listing) || aster_reply_set(&row, &decision) != ASTER_OK) {
        listing->failed = true;
        return false;
    }
    take(listing, row);
    return true;
}

static int by_name(const void *left, const void *right)
{
    return aster_bytes_compare(name_of(left), name_of(right));
}

static void collect_all(struct memory *memory, struct listing *listing)
{
    for (size_t i = 0; i <= memory->stripe_mask && !listing->failed; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        aster_memory_stripe_lock(stripe);
        listing->now_ns = aster_clock_now_ns(&memory->clock);
        aster_table_visit(stripe->table, listing->now_ns, collect, listing);
        aster_memory_stripe_unlock(memory, stripe);
    }
}

static void empty(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        aster_reply_fini(&listing->rows[i]);
    }
    listing->count = 0;
}

/* Rows that are not durable yet are shown once they are, and looked at again when they were taken back. */
static aster_status collect_durable(struct memory *memory, struct listing *listing, struct aster_error *error)
{
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        uint64_t undone = atomic_load(&memory->undone);
        collect_all(memory, listing);
        if (listing->failed || !memory_commits(memory)) {
            return ASTER_OK;
        }
        if (!memory->committer.settle(memory->committer.self)) {
            empty(listing);
            return aster_error_set(error, ASTER_ERR_TIMEOUT,
                                   "the journal does not finish what it writes: check the disk, and list again");
        }
        if (atomic_load(&memory->undone) == undone) {
            return ASTER_OK;
        }
        empty(listing);
    }
    return aster_error_set(error, ASTER_ERR_IO, "the rows keep changing back because the journal fails: see the log");
}

aster_status aster_memory_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                               struct aster_error *error)
{
    struct memory *memory = self;
    struct listing listing = {.memory = memory, .query = query};
    aster_status status = collect_durable(memory, &listing, error);
    if (!listing.failed && listing.count > 0) {
        qsort(listing.rows, listing.count, sizeof listing.rows[0], by_name);
    }
    bool more = !listing.failed;
    for (size_t i = 0; i < listing.count; i++) {
        more = more && visit(&listing.rows[i].decision.snapshot, user);
    }
    size_t count = listing.count;
    empty(&listing);
    free(listing.rows);
    return listing.failed ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory to list more than %zu rows", count)
                          : status;
}
