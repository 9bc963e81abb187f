#include "grantor/ahead.h"

#include <stdlib.h>

#include "aster/sys/serializer.h"
#include "base/error.h"

#define FRESH_NS INT64_C(1000000000)
#define FRESH_TIMES 4 /* as long as the question took: asking again would take as long */
#define GROWTH 8

/* A name with memory of its own. */
struct name {
    size_t size;
    char text[ASTER_RESOURCE_MAX];
};

struct grantor_ahead {
    struct name prefix;
    struct name after; /* the rows are those that follow it ... */
    bool complete;     /* ... up to the last one there is */
    int64_t read_ns;
    int64_t stale_ns; /* from then on it is asked for again */
    struct aster_reply *rows;
    size_t count;
    size_t capacity;
    bool failed;
};

struct grantor_ahead *grantor_ahead_create(void)
{
    return calloc(1, sizeof(struct grantor_ahead));
}

static void forget(struct grantor_ahead *ahead)
{
    for (size_t i = 0; i < ahead->count; i++) {
        aster_reply_fini(&ahead->rows[i]);
    }
    free(ahead->rows);
    ahead->rows = NULL;
    ahead->count = ahead->capacity = 0;
    ahead->complete = ahead->failed = false;
}

void grantor_ahead_destroy(struct grantor_ahead *ahead)
{
    if (ahead != NULL) {
        forget(ahead);
        free(ahead);
    }
}

static struct aster_bytes view(const struct name *name)
{
    return (struct aster_bytes){name->text, name->size};
}

static void set(struct name *name, struct aster_bytes bytes)
{
    name->size = bytes.size;
    memmove(name->text, bytes.size > 0 ? bytes.data : "", bytes.size);
}

static struct aster_bytes name_of(const struct grantor_ahead *ahead, size_t at)
{
    return ahead->rows[at].decision.snapshot.resource;
}

static bool keep(const struct aster_snapshot *row, void *user)
{
    struct grantor_ahead *ahead = user;
    struct aster_decision decision = {.struct_size = sizeof decision, .snapshot = *row};
    decision.snapshot.value = (struct aster_bytes){NULL, 0};
    struct aster_reply *kept = &ahead->rows[ahead->count];
    *kept = (struct aster_reply)ASTER_REPLY_INIT;
    if (ahead->count == ahead->capacity || aster_reply_set(kept, &decision) != ASTER_OK) {
        ahead->failed = true;
        return false;
    }
    ahead->count++;
    return true;
}

static aster_status ask(struct grantor_ahead *ahead, struct aster_serializer *serializer, size_t limit,
                        struct aster_error *error)
{
    struct aster_list_query query = ASTER_LIST_QUERY_INIT;
    forget(ahead);
    ahead->rows = malloc((limit + 1) * sizeof ahead->rows[0]);
    if (ahead->rows == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory to list %zu rows", limit);
    }
    ahead->capacity = limit;
    ahead->read_ns = aster_clock_now_ns(aster_serializer_clock(serializer));
    query.prefix = view(&ahead->prefix);
    query.after = view(&ahead->after);
    query.limit = limit;
    aster_status status = aster_list_page(serializer, &query, keep, ahead, error);
    if (status == ASTER_OK && ahead->failed) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "no memory to list %zu rows", limit);
    }
    ahead->complete = status == ASTER_OK && ahead->count < limit;
    int64_t end_ns = aster_clock_now_ns(aster_serializer_clock(serializer));
    int64_t fresh_ns = FRESH_TIMES * (end_ns - ahead->read_ns);
    ahead->stale_ns = end_ns + (fresh_ns > FRESH_NS ? fresh_ns : FRESH_NS);
    return status;
}

/* Is the row that follows `after` among those that are kept, or known not to exist? */
static bool knows(const struct grantor_ahead *ahead, struct aster_bytes prefix, struct aster_bytes after,
                  int64_t now_ns)
{
    return ahead->rows != NULL && now_ns < ahead->stale_ns && aster_bytes_equal(view(&ahead->prefix), prefix) &&
           aster_bytes_compare(after, view(&ahead->after)) >= 0 &&
           (ahead->complete || (ahead->count > 0 && aster_bytes_compare(after, name_of(ahead, ahead->count - 1)) < 0));
}

static size_t first_after(const struct grantor_ahead *ahead, struct aster_bytes after)
{
    size_t low = 0;
    size_t high = ahead->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (aster_bytes_compare(name_of(ahead, middle), after) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* False when the visitor has seen enough. */
static bool show(const struct grantor_ahead *ahead, struct aster_bytes after, int64_t age_ns, aster_visit_row visit,
                 void *user)
{
    for (size_t at = first_after(ahead, after); at < ahead->count; at++) {
        struct aster_snapshot row = ahead->rows[at].decision.snapshot;
        row.remaining_ns = row.remaining_ns > age_ns ? row.remaining_ns - age_ns : 0;
        if (!visit(&row, user)) {
            return false;
        }
    }
    return true;
}

aster_status grantor_ahead_list(struct grantor_ahead *ahead, struct aster_serializer *serializer,
                                struct aster_bytes prefix, struct aster_bytes after, size_t first,
                                aster_visit_row visit, void *user, struct aster_error *error)
{
    int64_t now_ns = aster_clock_now_ns(aster_serializer_clock(serializer));
    size_t limit = after.size > 0 ? first * GROWTH : first; /* whoever goes on will go on */
    struct name from;
    if (prefix.size > ASTER_RESOURCE_MAX || after.size > ASTER_RESOURCE_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "no name is longer than %d bytes", ASTER_RESOURCE_MAX);
    }
    set(&from, after);
    for (;;) {
        if (!knows(ahead, prefix, view(&from), now_ns)) {
            set(&ahead->prefix, prefix);
            set(&ahead->after, view(&from));
            aster_status status =
                ask(ahead, serializer, limit < GRANTOR_AHEAD_ROWS ? limit : GRANTOR_AHEAD_ROWS, error);
            if (status != ASTER_OK) {
                forget(ahead);
                return status;
            }
            limit = limit < GRANTOR_AHEAD_ROWS ? limit * GROWTH : limit;
            now_ns = ahead->read_ns;
        }
        if (!show(ahead, view(&from), now_ns - ahead->read_ns, visit, user)) {
            return ASTER_OK;
        }
        if (ahead->complete) {
            forget(ahead);
            return ASTER_OK;
        }
        set(&from, name_of(ahead, ahead->count - 1));
    }
}
