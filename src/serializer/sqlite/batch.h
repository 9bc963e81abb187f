/* Requests that share one transaction: decided in memory, in order, then written and committed together. */
#ifndef SQLITE_BATCH_H
#define SQLITE_BATCH_H

#include "serializer/sqlite/store.h"

struct aster_batch_entry {
    struct aster_request *request;
    bool decided; /* status or decision is final */
    aster_status status;
    struct aster_decision decision; /* views into the batch's memory or the request */
    struct aster_error *error;      /* in the batch's memory, or NULL */
};

struct aster_batch; /* memory that is used again from batch to batch; one thread */

aster_status aster_batch_create(struct aster_store *store, struct aster_connection *connection, size_t capacity,
                                struct aster_batch **batch, struct aster_error *error);
void aster_batch_destroy(struct aster_batch *batch);

/* Start anew with no entries; what earlier decisions referred to is gone. */
void aster_batch_reset(struct aster_batch *batch);
/* false when the batch is full. */
bool aster_batch_add(struct aster_batch *batch, struct aster_request *request);
size_t aster_batch_count(const struct aster_batch *batch);
struct aster_batch_entry *aster_batch_entry_at(struct aster_batch *batch, size_t index);

/* Decide what needs no write: inspections, and acquires that are denied. Entries that need one stay undecided. */
void aster_batch_read(struct aster_batch *batch);

/* Decide and store all entries. The caller has begun the write transaction; on return it has ended, and every entry is
 * decided. */
void aster_batch_write(struct aster_batch *batch, bool synced);

#endif
