/* What collects for the next appends: a queue of entries in the making, with the changes whose answers wait for each.
 * Not thread-safe. */
#ifndef JOURNAL_BATCH_H
#define JOURNAL_BATCH_H

#include "journal/entry.h"
#include "serializer/memory/commit.h"

struct journal_batch {
    struct journal_batch *next;
    uint64_t number;
    struct aster_entry_builder builder;
    struct memory_change *first; /* in the order of the decisions */
    struct memory_change **end;
    size_t count;
};

struct journal_batches {
    struct journal_batch *first;
    struct journal_batch *last; /* the one that collects */
    struct journal_batch *spare;
    uint64_t newest;  /* number of the last batch that was begun */
    uint64_t settled; /* number of the last one that is durable or undone; the owner's */
};

void journal_batches_init(struct journal_batches *batches);
/* Changes that are left are destroyed; none of them may have a row or a request. */
void journal_batches_fini(struct journal_batches *batches);

/* Add what `change` says of its row and of its event, see struct memory_committer. Errors: ASTER_ERR_NOMEM,
 * ASTER_ERR_INVALID (no such row can exist); nothing was added. */
aster_status journal_batches_add(struct journal_batches *batches, struct memory_change *change,
                                 const struct aster_row *row, bool same_value, struct aster_error *error);

/* Take the oldest batch out; NULL when there is none. It goes back through recycle(), its changes being the caller's.
 */
struct journal_batch *journal_batches_pop(struct journal_batches *batches);
void journal_batches_recycle(struct journal_batches *batches, struct journal_batch *batch);

#endif
