#include "grantor/leases.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/flight.h"

#define PAGE_ROWS 65536

struct lease {
    struct lease *next;
    int64_t epoch;
    size_t size;
    char resource[];
};

/* One walk over all rows, page by page. */
struct walk {
    struct aster_bytes holder;
    struct grantor_leases found;
    bool keep;            /* collect them, too */
    struct lease *leases; /* of this page */
    bool no_memory;
    size_t seen;
    size_t name_size; /* of the last row */
    char name[ASTER_RESOURCE_MAX];
};

static bool keep(struct walk *walk, const struct aster_snapshot *row)
{
    struct lease *lease = malloc(sizeof *lease + row->resource.size);
    if (lease == NULL) {
        return false;
    }
    lease->epoch = row->epoch;
    lease->size = row->resource.size;
    memcpy(lease->resource, row->resource.data, row->resource.size);
    lease->next = walk->leases;
    walk->leases = lease;
    return true;
}

static bool visit(const struct aster_snapshot *row, void *user)
{
    struct walk *walk = user;
    walk->seen++;
    walk->name_size = row->resource.size;
    memcpy(walk->name, row->resource.data, row->resource.size);
    if (!row->held || !aster_bytes_equal(row->holder, walk->holder)) {
        return true;
    }
    walk->found.count++;
    if (row->remaining_ns > walk->found.remaining_ns) {
        walk->found.remaining_ns = row->remaining_ns;
    }
    walk->no_memory = walk->keep && !keep(walk, row);
    return !walk->no_memory;
}

/* The page after the last name; *more tells whether another may follow. */
static aster_status next_page(struct grantor_state *state, struct walk *walk, bool *more, struct aster_error *error)
{
    struct aster_list_query query = ASTER_LIST_QUERY_INIT;
    char after[ASTER_RESOURCE_MAX];
    memcpy(after, walk->name, walk->name_size);
    query.after = (struct aster_bytes){after, walk->name_size};
    query.limit = PAGE_ROWS;
    walk->seen = 0;
    aster_status status = aster_list_page(state->serializer, &query, visit, walk, error);
    *more = walk->seen == PAGE_ROWS;
    return walk->no_memory ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory to look for leases") : status;
}

aster_status grantor_leases_count(struct grantor_state *state, struct aster_bytes holder, struct grantor_leases *leases,
                                  struct aster_error *error)
{
    struct walk walk = {.holder = holder};
    aster_status status = ASTER_OK;
    bool more = true;
    while (status == ASTER_OK && more) {
        status = next_page(state, &walk, &more, error);
    }
    if (status == ASTER_OK) {
        *leases = walk.found;
    }
    return status;
}

/* The revocations of one page, on their way. */
struct sweep {
    struct grantor_state *state;
    struct aster_bytes actor;
    const struct lease *leases;
    pthread_mutex_t lock;
    pthread_cond_t all_answered;
    uint64_t open; /* under the lock from here on */
    uint64_t revoked;
    uint64_t failed;
    aster_status status; /* of the first that failed */
};

static void note(struct sweep *sweep, aster_status status, const struct aster_decision *decision)
{
    pthread_mutex_lock(&sweep->lock);
    if (status != ASTER_OK) {
        sweep->failed++;
        sweep->status = sweep->status == ASTER_OK ? status : sweep->status;
    } else if (decision->outcome == ASTER_GRANTED) { /* else it has ended by itself */
        sweep->revoked++;
    }
    if (--sweep->open == 0) {
        pthread_cond_signal(&sweep->all_answered);
    }
    pthread_mutex_unlock(&sweep->lock);
}

static void answered(void *user, aster_status status, const struct aster_decision *decision)
{
    note(user, status, decision);
}

static aster_status start(void *argument)
{
    struct sweep *sweep = argument;
    for (const struct lease *lease = sweep->leases; lease != NULL; lease = lease->next) {
        struct aster_operation revoke = ASTER_OPERATION_INIT;
        revoke.kind = ASTER_OP_REVOKE;
        revoke.resource = (struct aster_bytes){lease->resource, lease->size};
        revoke.caller = sweep->actor;
        revoke.flags = ASTER_OP_EXPECT_EPOCH;
        revoke.epoch = lease->epoch;
        struct grantor_flight *flight = grantor_flight_start(sweep->state, NULL, 0, &revoke, 0, 0);
        if (flight != NULL) {
            flight->done = answered;
            flight->done_user = sweep;
        } else {
            note(sweep, ASTER_ERR_NOMEM, NULL);
        }
    }
    return ASTER_OK;
}

static void free_leases(struct lease *lease)
{
    while (lease != NULL) {
        struct lease *next = lease->next;
        free(lease);
        lease = next;
    }
}

static aster_status revoke_page(struct grantor_state *state, struct aster_bytes actor, const struct lease *leases,
                                uint64_t *revoked, struct aster_error *error)
{
    struct sweep sweep = {.state = state, .actor = actor, .leases = leases};
    for (const struct lease *lease = leases; lease != NULL; lease = lease->next) {
        sweep.open++;
    }
    if (sweep.open == 0) {
        return ASTER_OK;
    }
    pthread_mutex_init(&sweep.lock, NULL);
    pthread_cond_init(&sweep.all_answered, NULL);
    aster_loop_call(state->loop, start, &sweep);
    pthread_mutex_lock(&sweep.lock);
    while (sweep.open > 0) {
        pthread_cond_wait(&sweep.all_answered, &sweep.lock);
    }
    pthread_mutex_unlock(&sweep.lock);
    pthread_cond_destroy(&sweep.all_answered);
    pthread_mutex_destroy(&sweep.lock);
    *revoked += sweep.revoked;
    if (sweep.failed == 0) {
        return ASTER_OK;
    }
    return aster_error_set(error, sweep.status,
                           "%" PRIu64 " leases were revoked and %" PRIu64 " could not be (%s): do it again", *revoked,
                           sweep.failed, aster_status_name(sweep.status));
}

aster_status grantor_leases_revoke(struct grantor_state *state, struct aster_bytes holder, struct aster_bytes actor,
                                   uint64_t *revoked, struct aster_error *error)
{
    struct walk walk = {.holder = holder, .keep = true};
    aster_status status = ASTER_OK;
    bool more = true;
    while (status == ASTER_OK && more) {
        status = next_page(state, &walk, &more, error);
        if (status == ASTER_OK) {
            status = revoke_page(state, actor, walk.leases, revoked, error);
        }
        free_leases(walk.leases);
        walk.leases = NULL;
    }
    return status;
}
