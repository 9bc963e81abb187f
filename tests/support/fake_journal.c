#include "support/fake_journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/entry.h"

void fake_store_init(struct fake_store *store)
{
    *store = (struct fake_store){.next = FAKE_APPEND_STORE};
    pthread_mutex_init(&store->lock, NULL);
}

void fake_store_fini(struct fake_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        free(store->entries[i]);
    }
    free(store->entries);
    free(store->sizes);
    pthread_mutex_destroy(&store->lock);
}

static void put_at(struct fake_store *store, size_t at, struct aster_bytes entry)
{
    if (at == store->capacity) {
        store->capacity = store->capacity == 0 ? 64 : store->capacity * 2;
        store->entries = realloc(store->entries, store->capacity * sizeof store->entries[0]);
        store->sizes = realloc(store->sizes, store->capacity * sizeof store->sizes[0]);
    }
    if (at < store->count) {
        free(store->entries[at]);
    } else {
        store->count = at + 1;
    }
    store->entries[at] = malloc(entry.size);
    if (store->entries[at] == NULL) {
        abort();
    }
    memcpy(store->entries[at], entry.data, entry.size);
    store->sizes[at] = entry.size;
}

static aster_status append(void *self, int64_t position, struct aster_bytes entry, struct aster_error *error)
{
    struct fake_store *store = self;
    pthread_mutex_lock(&store->lock);
    enum fake_append outcome = store->next;
    size_t at = (size_t)position - 1;
    store->appends++;
    if (position < 1 || (at != store->count && at + 1 != store->count)) {
        abort(); /* a gap, or an entry that was replaced after it had been acknowledged */
    }
    if (outcome == FAKE_APPEND_STORE || outcome == FAKE_APPEND_UNKNOWN) {
        put_at(store, at, entry);
    }
    pthread_mutex_unlock(&store->lock);
    if (outcome == FAKE_APPEND_STORE) {
        return ASTER_OK;
    }
    return outcome == FAKE_APPEND_FAIL ? aster_error_set(error, ASTER_ERR_IO, "the fake disk is full")
                                       : aster_error_set(error, ASTER_ERR_INDETERMINATE, "the fake disk is silent");
}

static aster_status checkpoint(void *self, bool *more, struct aster_error *error)
{
    struct fake_store *store = self;
    (void)error;
    store->checkpoints++;
    *more = false;
    return ASTER_OK;
}

static struct aster_bytes keep(char *to, struct aster_bytes bytes)
{
    if (bytes.size >= 64) {
        abort();
    }
    memcpy(to, bytes.size > 0 ? bytes.data : "", bytes.size);
    to[bytes.size] = '\0';
    return (struct aster_bytes){to, bytes.size};
}

const struct fake_row *fake_image_find(const struct fake_image *image, struct aster_bytes resource)
{
    for (size_t i = 0; i < image->count; i++) {
        if (aster_bytes_equal(aster_text(image->rows[i].name), resource)) {
            return &image->rows[i];
        }
    }
    return NULL;
}

static void take_row(struct fake_image *image, const struct aster_record *record)
{
    struct fake_row *row = (struct fake_row *)fake_image_find(image, record->resource);
    if (row == NULL) {
        if (image->count == FAKE_ROWS_MAX) {
            abort();
        }
        row = &image->rows[image->count++];
        *row = (struct fake_row){0};
        keep(row->name, record->resource);
    }
    struct aster_bytes value = row->row.value;
    row->row = record->row;
    row->row.value = record->keep_value ? value : keep(row->value, record->row.value);
    row->row.holder = keep(row->holder, record->row.holder);
    row->row.last_holder = keep(row->last_holder, record->row.last_holder);
    row->row.applied.caller = keep(row->caller, record->row.applied.caller);
}

static void take_removed(struct fake_image *image, const struct aster_record *record)
{
    struct fake_row *row = (struct fake_row *)fake_image_find(image, record->resource);
    image->floor = record->floor > image->floor ? record->floor : image->floor;
    if (row == NULL) {
        abort();
    }
    struct fake_row *last = &image->rows[--image->count];
    if (row != last) {
        *row = *last;
        row->row.holder.data = row->holder;
        row->row.value.data = row->value;
        row->row.last_holder.data = row->last_holder;
        row->row.applied.caller.data = row->caller;
    }
}

typedef aster_status (*visit_event)(void *user, const struct aster_event *event, struct aster_error *error);

/* With the lock held: the rows to `image`, the events to `visit`, either may be NULL. */
static aster_status replay(const struct fake_store *store, struct fake_image *image, visit_event visit, void *user,
                           struct aster_error *error)
{
    for (size_t i = 0; i < store->count; i++) {
        struct aster_entry_reader reader;
        struct aster_record record;
        bool found = true;
        aster_status status =
            aster_entry_open((struct aster_bytes){store->entries[i], store->sizes[i]}, &reader, error);
        while (status == ASTER_OK && (status = aster_entry_next(&reader, &record, &found, error)) == ASTER_OK &&
               found) {
            if (record.kind == ASTER_RECORD_EVENT) {
                status = visit != NULL ? visit(user, &record.event, error) : ASTER_OK;
            } else if (image != NULL && record.kind == ASTER_RECORD_ROW) {
                take_row(image, &record);
            } else if (image != NULL) {
                take_removed(image, &record);
            }
        }
        if (status != ASTER_OK) {
            return status;
        }
    }
    return ASTER_OK;
}

void fake_store_read(struct fake_store *store, struct fake_image *image)
{
    image->count = 0;
    image->floor = 0;
    pthread_mutex_lock(&store->lock);
    if (replay(store, image, NULL, NULL, NULL) != ASTER_OK) {
        abort();
    }
    pthread_mutex_unlock(&store->lock);
}

static aster_status load(void *self, const struct aster_journal_loading *into, int64_t *last_position,
                         struct aster_error *error)
{
    struct fake_store *store = self;
    struct fake_image *image = calloc(1, sizeof *image);
    if (image == NULL) {
        abort();
    }
    fake_store_read(store, image);
    aster_status status = into->floor(into->user, image->floor, error);
    for (size_t i = 0; i < image->count && status == ASTER_OK; i++) {
        status = into->row(into->user, aster_text(image->rows[i].name), &image->rows[i].row, error);
    }
    free(image);
    *last_position = (int64_t)store->count;
    return status == ASTER_OK ? replay(store, NULL, into->event, into->user, error) : status;
}

static void destroy(void *self)
{
    (void)self;
}

struct aster_journal fake_journal(struct fake_store *store)
{
    static const struct aster_journal_ops ops = {
        .struct_size = sizeof ops,
        .name = "fake",
        .load = load,
        .append = append,
        .checkpoint = checkpoint,
        .destroy = destroy,
    };
    return (struct aster_journal){&ops, store};
}
