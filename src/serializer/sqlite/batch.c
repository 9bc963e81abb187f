#include "serializer/sqlite/batch.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/siphash.h"
#include "platform/entropy.h"
#include "serializer/sqlite/audit.h"

/* A row as this batch has changed it so far. */
struct working {
    struct aster_bytes resource; /* borrowed from the first request about it */
    struct aster_stored_row stored;
    bool in_table; /* there is a row to update or delete */
    bool dirty;
};

struct aster_batch {
    struct aster_store *store;
    struct aster_row_reader reader;
    struct aster_arena arena;
    struct aster_hash_key key; /* names are chosen by clients */
    size_t capacity;
    size_t count;
    struct aster_batch_entry *entries;
    struct working *rows;
    size_t row_count;
    size_t *slots; /* open addressing over rows: index + 1, or 0; a power of two of at least 2 * capacity */
    size_t slot_count;
    struct aster_event *events; /* at most one per entry */
    size_t event_count;
    struct aster_meta meta;
    bool meta_dirty;
    int64_t now_ns;
    int64_t unix_ms;
};

aster_status aster_batch_create(struct aster_store *store, struct aster_connection *connection, size_t capacity,
                                struct aster_batch **batch, struct aster_error *error)
{
    struct aster_batch *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a batch");
    }
    made->store = store;
    made->reader = (struct aster_row_reader){connection, &made->arena, store->clock, &store->boot};
    made->capacity = capacity;
    made->slot_count = 2;
    while (made->slot_count < 2 * capacity) {
        made->slot_count *= 2;
    }
    made->entries = calloc(capacity, sizeof *made->entries);
    made->rows = calloc(capacity, sizeof *made->rows);
    made->slots = calloc(made->slot_count, sizeof *made->slots);
    made->events = calloc(capacity, sizeof *made->events);
    aster_status status = ASTER_OK;
    if (made->entries == NULL || made->rows == NULL || made->slots == NULL || made->events == NULL) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a batch of %zu requests", capacity);
    } else {
        status = aster_entropy_fill(&made->key, sizeof made->key, error);
    }
    if (status != ASTER_OK) {
        aster_batch_destroy(made);
        return status;
    }
    *batch = made;
    return ASTER_OK;
}

void aster_batch_destroy(struct aster_batch *batch)
{
    if (batch != NULL) {
        aster_arena_fini(&batch->arena);
        free(batch->entries);
        free(batch->rows);
        free(batch->slots);
        free(batch->events);
        free(batch);
    }
}

static void forget_rows(struct aster_batch *batch)
{
    if (batch->row_count > 0) {
        memset(batch->slots, 0, batch->slot_count * sizeof *batch->slots);
    }
    batch->row_count = 0;
    batch->event_count = 0;
    aster_arena_reset(&batch->arena);
}

void aster_batch_reset(struct aster_batch *batch)
{
    forget_rows(batch);
    batch->count = 0;
}

bool aster_batch_add(struct aster_batch *batch, struct aster_request *request)
{
    if (batch->count == batch->capacity) {
        return false;
    }
    batch->entries[batch->count++] = (struct aster_batch_entry){.request = request};
    return true;
}

size_t aster_batch_count(const struct aster_batch *batch)
{
    return batch->count;
}

struct aster_batch_entry *aster_batch_entry_at(struct aster_batch *batch, size_t index)
{
    return &batch->entries[index];
}

static void fail(struct aster_batch *batch, struct aster_batch_entry *entry, const struct aster_error *error)
{
    entry->decided = true;
    entry->status = error->status;
    entry->error = aster_arena_take(&batch->arena, sizeof *entry->error);
    if (entry->error != NULL) {
        *entry->error = *error;
    }
}

static aster_status find_row(struct aster_batch *batch, struct aster_bytes resource, struct working **row,
                             struct aster_error *error)
{
    size_t mask = batch->slot_count - 1;
    size_t at = (size_t)aster_siphash(&batch->key, resource) & mask;
    while (batch->slots[at] != 0) {
        struct working *found = &batch->rows[batch->slots[at] - 1];
        if (aster_bytes_equal(found->resource, resource)) {
            *row = found;
            return ASTER_OK;
        }
        at = (at + 1) & mask;
    }
    struct working *made = &batch->rows[batch->row_count];
    aster_status status = aster_row_load(&batch->reader, resource, &made->stored, error);
    if (status != ASTER_OK) {
        return status; /* the slot stays free: the next request about this row fails in the same way */
    }
    made->resource = resource;
    made->in_table = made->stored.exists;
    made->dirty = made->stored.rearmed;
    batch->slots[at] = ++batch->row_count;
    *row = made;
    return ASTER_OK;
}

/* The row's new bytes belong to requests, which go away one by one while later decisions still show them. */
static bool adopt(struct aster_batch *batch, const struct aster_row *from, struct aster_row *row)
{
    const struct aster_bytes *const before[] = {&from->holder, &from->value, &from->last_holder, &from->applied.caller};
    struct aster_bytes *const after[] = {&row->holder, &row->value, &row->last_holder, &row->applied.caller};
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        if (after[i]->data != before[i]->data && !aster_arena_copy(&batch->arena, *after[i], after[i])) {
            return false;
        }
    }
    return true;
}

static void add_event(struct aster_batch *batch, const struct aster_batch_entry *entry, enum aster_event_kind kind,
                      struct aster_bytes previous)
{
    const struct aster_operation *operation = &entry->request->operation;
    batch->events[batch->event_count++] = (struct aster_event){
        .unix_ms = batch->unix_ms,
        .kind = kind,
        .reason = entry->decision.reason,
        .resource = operation->resource,
        .actor = operation->caller,
        .previous = previous,
        .epoch = entry->decision.epoch,
        .carried_epoch = kind == ASTER_EVENT_FENCE_REJECTED ? operation->epoch : 0,
    };
}

/* What the history says about an entry. `before` is the row that was decided on. */
static void record(struct aster_batch *batch, const struct aster_batch_entry *entry,
                   const struct aster_stored_row *before)
{
    const struct aster_decision *decision = &entry->decision;
    const struct aster_bytes nobody = {NULL, 0};
    if (decision->replayed || decision->kind == ASTER_OP_RENEW || decision->kind == ASTER_OP_INSPECT) {
        return;
    }
    if (decision->outcome == ASTER_DENIED) {
        if (decision->kind == ASTER_OP_PUT && decision->reason != ASTER_REASON_REVISION_MISMATCH) {
            add_event(batch, entry, ASTER_EVENT_FENCE_REJECTED, nobody);
        }
        return;
    }
    switch (decision->kind) {
    case ASTER_OP_ACQUIRE:
        add_event(batch, entry, decision->takeover ? ASTER_EVENT_TAKEOVER : ASTER_EVENT_GRANTED,
                  decision->takeover ? before->row.holder : nobody);
        break;
    case ASTER_OP_RELEASE:
        add_event(batch, entry, ASTER_EVENT_RELEASED, nobody);
        break;
    case ASTER_OP_REVOKE:
        add_event(batch, entry, ASTER_EVENT_REVOKED, before->row.holder);
        break;
    case ASTER_OP_FORGET:
        if (before->exists) {
            add_event(batch, entry, ASTER_EVENT_FORGOTTEN, nobody);
        }
        break;
    default:
        break;
    }
}

static aster_status count_rows(struct aster_batch *batch, const struct working *row, const struct aster_effect *effect,
                               struct aster_error *error)
{
    if (effect->removed) {
        int64_t floor = effect->row.epoch;
        batch->meta.floor = floor > batch->meta.floor ? floor : batch->meta.floor;
        batch->meta.resources -= row->stored.exists;
        batch->meta_dirty = true;
    } else if (!row->stored.exists) {
        size_t max = batch->store->options.limits.resources_max;
        if ((uint64_t)batch->meta.resources >= max) {
            return aster_error_set(error, ASTER_ERR_LIMIT,
                                   "resources_max is %zu and that many have a row: forget some, or raise it", max);
        }
        batch->meta.resources++;
        batch->meta_dirty = true;
    }
    return ASTER_OK;
}

static aster_status apply(struct aster_batch *batch, struct working *row, const struct aster_effect *effect,
                          struct aster_error *error)
{
    struct aster_stored_row next = row->stored;
    next.row = effect->row;
    if (!adopt(batch, &row->stored.row, &next.row)) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a row: nothing was applied");
    }
    aster_status status = count_rows(batch, row, effect, error);
    if (status != ASTER_OK) {
        return status;
    }
    next.exists = !effect->removed;
    if (effect->removed) {
        next.row.epoch = batch->meta.floor;
    }
    if (effect->rearm) {
        next.granted_at_ns = batch->now_ns;
    }
    if (next.row.epoch != row->stored.row.epoch) {
        next.since_unix_ms = batch->unix_ms;
    }
    row->stored = next;
    row->dirty = true;
    return ASTER_OK;
}

static bool allowed(const struct aster_batch *batch, const struct aster_operation *operation)
{
    aster_authorizer authorize = batch->store->options.authorize;
    return authorize == NULL || authorize(operation, batch->store->options.authorize_user);
}

/* The caller may not even learn what the row is. */
static void deny_unauthorized(struct aster_batch *batch, struct aster_batch_entry *entry)
{
    const struct aster_operation *operation = &entry->request->operation;
    entry->decided = true;
    entry->decision = (struct aster_decision){
        .struct_size = sizeof entry->decision,
        .kind = operation->kind,
        .outcome = ASTER_DENIED,
        .reason = ASTER_REASON_UNAUTHORIZED,
        .carried_epoch = operation->epoch,
        .snapshot = {.resource = operation->resource},
    };
    add_event(batch, entry, ASTER_EVENT_UNAUTHORIZED, (struct aster_bytes){NULL, 0});
}

/* Run the rules on an entry. With `only_reading`, leave an entry alone that would change its row. */
static aster_status decide(struct aster_batch *batch, struct aster_batch_entry *entry, bool only_reading,
                           struct aster_error *error)
{
    const struct aster_operation *operation = &entry->request->operation;
    if (entry->request->deadline_ns != 0 && batch->now_ns > entry->request->deadline_ns) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT,
                               "the deadline passed before the operation was ordered: nothing was applied; retry");
    }
    if (!allowed(batch, operation)) {
        if (!only_reading) {
            deny_unauthorized(batch, entry);
        }
        return ASTER_OK;
    }
    struct working *row;
    aster_status status = find_row(batch, operation->resource, &row, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (only_reading) {
        batch->now_ns = aster_clock_now_ns(batch->store->clock); /* not before what the snapshot shows was granted */
    }
    struct aster_effect effect;
    bool expired = aster_stored_row_expired(&row->stored, batch->now_ns);
    status = aster_transition(&row->stored.row, expired, operation, &effect, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (only_reading && (effect.changed || (row->stored.rearmed && operation->kind != ASTER_OP_INSPECT))) {
        return ASTER_OK;
    }
    const struct aster_stored_row before = row->stored;
    if (effect.changed) {
        status = apply(batch, row, &effect, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    entry->decided = true;
    entry->decision = effect.decision;
    aster_stored_row_snapshot(operation->resource, &row->stored, batch->now_ns, &entry->decision.snapshot);
    record(batch, entry, &before);
    return ASTER_OK;
}

static void decide_all(struct aster_batch *batch, bool only_reading)
{
    batch->now_ns = aster_clock_now_ns(batch->store->clock);
    batch->unix_ms = aster_clock_unix_ms(batch->store->clock);
    for (size_t i = 0; i < batch->count; i++) {
        struct aster_error error = ASTER_ERROR_INIT;
        if (!batch->entries[i].decided && decide(batch, &batch->entries[i], only_reading, &error) != ASTER_OK) {
            fail(batch, &batch->entries[i], &error);
        }
    }
}

void aster_batch_read(struct aster_batch *batch)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_connection_begin_read(batch->reader.connection, &error) != ASTER_OK) {
        for (size_t i = 0; i < batch->count; i++) {
            fail(batch, &batch->entries[i], &error);
        }
        return;
    }
    decide_all(batch, true);
    aster_connection_rollback(batch->reader.connection);
}

static aster_status write_row(struct aster_batch *batch, const struct working *row, struct aster_error *error)
{
    struct aster_connection *connection = batch->reader.connection;
    if (!row->stored.exists) {
        return row->in_table ? aster_row_delete(connection, row->resource, error) : ASTER_OK;
    }
    return aster_row_store(connection, row->resource, &row->stored, &batch->store->boot, row->in_table, error);
}

static aster_status write_all(struct aster_batch *batch, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < batch->row_count; i++) {
        if (batch->rows[i].dirty) {
            status = write_row(batch, &batch->rows[i], error);
        }
    }
    for (size_t i = 0; status == ASTER_OK && i < batch->event_count; i++) {
        status =
            aster_audit_append(batch->reader.connection, &batch->events[i], batch->store->options.history_max, error);
    }
    if (status == ASTER_OK && batch->meta_dirty) {
        status = aster_meta_store(batch->reader.connection, &batch->meta, error);
    }
    return status;
}

/* One attempt; on failure the transaction is rolled back and no entry has an answer yet. */
static aster_status attempt(struct aster_batch *batch, struct aster_error *error)
{
    batch->meta_dirty = false;
    aster_status status = aster_meta_load(batch->reader.connection, &batch->meta, error);
    if (status == ASTER_OK) {
        decide_all(batch, false);
        status = write_all(batch, error);
    }
    if (status != ASTER_OK) {
        aster_connection_rollback(batch->reader.connection);
        return status;
    }
    return aster_connection_commit(batch->reader.connection, error);
}

static void undecide(struct aster_batch *batch)
{
    forget_rows(batch);
    for (size_t i = 0; i < batch->count; i++) {
        batch->entries[i] = (struct aster_batch_entry){.request = batch->entries[i].request};
    }
}

void aster_batch_write(struct aster_batch *batch, bool synced)
{
    struct aster_error error = ASTER_ERROR_INIT;
    forget_rows(batch);
    aster_status status = attempt(batch, &error);
    if (status == ASTER_ERR_IO) {
        /* A full disk can still take what fits into the log once that starts at its beginning again. */
        undecide(batch);
        aster_connection_checkpoint(batch->reader.connection);
        status = aster_connection_begin_write(batch->reader.connection, synced, &error);
        if (status == ASTER_OK) {
            status = attempt(batch, &error);
        }
    }
    if (status == ASTER_OK) {
        return;
    }
    undecide(batch); /* nothing in memory may show what is not stored */
    for (size_t i = 0; i < batch->count; i++) {
        fail(batch, &batch->entries[i], &error);
    }
}
