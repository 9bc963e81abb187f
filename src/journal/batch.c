#include "journal/batch.h"

#include <stdlib.h>

#include "base/error.h"

/* A batch with less room than this is closed: the longest row and its event fit. */
#define CHANGE_MAX ((size_t)128 << 10)
#define KEPT_CAPACITY_MAX ((size_t)256 << 10) /* of a builder that is used again */

void journal_batches_init(struct journal_batches *batches)
{
    *batches = (struct journal_batches){0};
}

static void destroy(struct journal_batch *batch)
{
    if (batch != NULL) {
        aster_entry_builder_fini(&batch->builder);
        free(batch);
    }
}

void journal_batches_fini(struct journal_batches *batches)
{
    struct journal_batch *batch;
    while ((batch = journal_batches_pop(batches)) != NULL) {
        while (batch->first != NULL) {
            struct memory_change *next = batch->first->next;
            aster_memory_change_destroy(batch->first);
            batch->first = next;
        }
        destroy(batch);
    }
    destroy(batches->spare);
}

static struct journal_batch *begin(struct journal_batches *batches)
{
    struct journal_batch *batch = batches->spare != NULL ? batches->spare : calloc(1, sizeof *batch);
    batches->spare = NULL;
    if (batch == NULL) {
        return NULL;
    }
    batch->next = NULL;
    batch->number = ++batches->newest;
    batch->first = NULL;
    batch->end = &batch->first;
    batch->count = 0;
    if (batches->last != NULL) {
        batches->last->next = batch;
    } else {
        batches->first = batch;
    }
    batches->last = batch;
    return batch;
}

static aster_status add_row(struct aster_entry_builder *builder, const struct memory_change *change,
                            const struct aster_row *row, bool same_value, struct aster_error *error)
{
    struct aster_record record = {.kind = row != NULL ? ASTER_RECORD_ROW : ASTER_RECORD_REMOVED,
                                  .resource = change->request->operation.resource,
                                  .floor = change->floor,
                                  .keep_value = row != NULL && same_value};
    if (row != NULL) {
        record.row = *row;
        record.row.value = same_value ? (struct aster_bytes){NULL, 0} : row->value;
    }
    return aster_entry_add(builder, &record, error);
}

aster_status journal_batches_add(struct journal_batches *batches, struct memory_change *change,
                                 const struct aster_row *row, bool same_value, struct aster_error *error)
{
    struct journal_batch *batch = batches->last;
    if (batch == NULL || batch->builder.used > ASTER_ENTRY_MAX - CHANGE_MAX) {
        batch = begin(batches);
    }
    if (batch == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the journal's queue: nothing was applied");
    }
    aster_status status = ASTER_OK;
    if (memory_change_has_row(change)) {
        status = add_row(&batch->builder, change, row, same_value, error);
    }
    if (status == ASTER_OK && change->event.kind != 0) {
        const struct aster_record record = {.kind = ASTER_RECORD_EVENT, .event = change->event};
        aster_status noted = aster_entry_add(&batch->builder, &record, error);
        status = memory_change_has_row(change) ? ASTER_OK : noted; /* a row counts without its line in the history */
    }
    if (status == ASTER_OK) {
        change->next = NULL;
        *batch->end = change;
        batch->end = &change->next;
        batch->count++;
    }
    return status;
}

struct journal_batch *journal_batches_pop(struct journal_batches *batches)
{
    struct journal_batch *batch = batches->first;
    if (batch != NULL) {
        batches->first = batch->next;
        batches->last = batches->first == NULL ? NULL : batches->last;
    }
    return batch;
}

void journal_batches_recycle(struct journal_batches *batches, struct journal_batch *batch)
{
    if (batches->spare != NULL || batch->builder.capacity > KEPT_CAPACITY_MAX) {
        destroy(batch);
        return;
    }
    aster_entry_builder_reset(&batch->builder);
    batches->spare = batch;
}
