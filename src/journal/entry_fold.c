#include "journal/entry_fold.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

struct slot {
    struct aster_folded folded; /* its views point into names and value */
    uint64_t hash;
    size_t next; /* index + 1 of the next slot of the bucket; 0 = none */
    char *names;
    size_t capacity; /* of names */
    char *value;
};

struct aster_entry_fold {
    struct aster_hash_key key;
    int64_t floor;
    struct slot *slots;
    size_t count;
    size_t capacity;
    size_t *buckets; /* index + 1 of the first slot; as many as `capacity`, a power of two */
};

aster_status aster_entry_fold_create(const struct aster_hash_key *key, struct aster_entry_fold **fold,
                                     struct aster_error *error)
{
    struct aster_entry_fold *made = aster_alloc(sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for folding journal entries");
    }
    *made = (struct aster_entry_fold){.key = *key};
    *fold = made;
    return ASTER_OK;
}

void aster_entry_fold_destroy(struct aster_entry_fold *fold)
{
    for (size_t i = 0; fold != NULL && i < fold->count; i++) {
        free(fold->slots[i].names);
        free(fold->slots[i].value);
    }
    if (fold != NULL) {
        free(fold->slots);
        free(fold->buckets);
        free(fold);
    }
}

static bool grow(struct aster_entry_fold *fold)
{
    size_t capacity = fold->capacity > 0 ? fold->capacity * 2 : 64;
    struct slot *slots = aster_realloc(fold->slots, capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    fold->slots = slots;
    size_t *buckets = aster_realloc(fold->buckets, capacity * sizeof *buckets);
    if (buckets == NULL) {
        return false;
    }
    fold->buckets = buckets;
    fold->capacity = capacity;
    memset(buckets, 0, capacity * sizeof *buckets);
    for (size_t i = 0; i < fold->count; i++) {
        size_t *bucket = &buckets[slots[i].hash & (capacity - 1)];
        slots[i].next = *bucket;
        *bucket = i + 1;
    }
    return true;
}

static struct slot *find(const struct aster_entry_fold *fold, uint64_t hash, struct aster_bytes resource)
{
    size_t at = fold->capacity > 0 ? fold->buckets[hash & (fold->capacity - 1)] : 0;
    for (; at != 0; at = fold->slots[at - 1].next) {
        struct slot *slot = &fold->slots[at - 1];
        if (slot->hash == hash && aster_bytes_equal(slot->folded.resource, resource)) {
            return slot;
        }
    }
    return NULL;
}

/* A slot without an image yet, whose name still has to be copied. */
static struct slot *add_slot(struct aster_entry_fold *fold, uint64_t hash)
{
    if (fold->count == fold->capacity && !grow(fold)) {
        return NULL;
    }
    struct slot *slot = &fold->slots[fold->count++];
    size_t *bucket = &fold->buckets[hash & (fold->capacity - 1)];
    *slot = (struct slot){.hash = hash, .next = *bucket, .folded.value_kept = true};
    *bucket = fold->count;
    return slot;
}

static void copy_name(char **to, struct aster_bytes *name)
{
    if (name->size > 0) {
        memcpy(*to, name->data, name->size);
    }
    name->data = *to;
    *to += name->size;
}

static bool copy_names(struct slot *slot, const struct aster_record *record)
{
    struct aster_row row = record->row;
    struct aster_bytes resource = record->resource;
    size_t size = resource.size + row.holder.size + row.last_holder.size + row.applied.caller.size;
    if (size > slot->capacity) {
        char *names = aster_alloc(size);
        if (names == NULL) {
            return false;
        }
        free(slot->names);
        slot->names = names;
        slot->capacity = size;
    }
    char *to = slot->names;
    copy_name(&to, &resource);
    copy_name(&to, &row.holder);
    copy_name(&to, &row.last_holder);
    copy_name(&to, &row.applied.caller);
    row.value = slot->folded.row.value; /* decided by copy_value() */
    slot->folded.resource = resource;
    slot->folded.row = row;
    return true;
}

static void drop_value(struct slot *slot)
{
    free(slot->value);
    slot->value = NULL;
    slot->folded.row.value = (struct aster_bytes){NULL, 0};
}

static bool copy_value(struct slot *slot, const struct aster_record *record)
{
    bool was_removed = slot->folded.removed;
    slot->folded.removed = record->kind == ASTER_RECORD_REMOVED;
    if (slot->folded.removed || was_removed || !record->keep_value) {
        drop_value(slot);
        slot->folded.value_kept = false;
    }
    struct aster_bytes value = record->row.value;
    if (slot->folded.removed || value.size == 0) {
        return true;
    }
    slot->value = aster_alloc(value.size);
    if (slot->value == NULL) {
        return false;
    }
    memcpy(slot->value, value.data, value.size);
    slot->folded.row.value = (struct aster_bytes){slot->value, value.size};
    return true;
}

static aster_status refuse_value(struct aster_bytes resource, struct aster_error *error)
{
    char name[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_CORRUPT,
                           "the journal keeps a value of %s that it never stored: restore it from a copy",
                           aster_printable(resource, name));
}

static bool keeps_another_value(const struct slot *before, const struct aster_record *record)
{
    int64_t revision = before->folded.removed ? 0 : before->folded.row.value_revision;
    return record->kind == ASTER_RECORD_ROW && record->keep_value && record->row.value_revision != revision;
}

aster_status aster_entry_fold_add(struct aster_entry_fold *fold, const struct aster_record *record,
                                  struct aster_error *error)
{
    if (record->kind == ASTER_RECORD_EVENT) {
        return ASTER_OK;
    }
    if (record->kind == ASTER_RECORD_REMOVED && record->floor > fold->floor) {
        fold->floor = record->floor;
    }
    uint64_t hash = aster_siphash(&fold->key, record->resource);
    struct slot *slot = find(fold, hash, record->resource);
    if (slot != NULL && keeps_another_value(slot, record)) {
        return refuse_value(record->resource, error);
    }
    slot = slot != NULL ? slot : add_slot(fold, hash);
    if (slot == NULL || !copy_names(slot, record) || !copy_value(slot, record)) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for folding journal entries of %zu resources",
                               fold->count);
    }
    return ASTER_OK;
}

int64_t aster_entry_fold_floor(const struct aster_entry_fold *fold)
{
    return fold->floor;
}

size_t aster_entry_fold_count(const struct aster_entry_fold *fold)
{
    return fold->count;
}

const struct aster_folded *aster_entry_fold_at(const struct aster_entry_fold *fold, size_t index)
{
    return &fold->slots[index].folded;
}

const struct aster_folded *aster_entry_fold_find(const struct aster_entry_fold *fold, struct aster_bytes resource)
{
    const struct slot *slot = find(fold, aster_siphash(&fold->key, resource), resource);
    return slot != NULL ? &slot->folded : NULL;
}

bool aster_folded_needs_base(const struct aster_folded *folded)
{
    return folded->value_kept && folded->row.value_revision > 0; /* revision 0: nobody has put a value yet */
}

aster_status aster_folded_row(const struct aster_folded *folded, const struct aster_row *base, struct aster_row *row,
                              struct aster_error *error)
{
    if (aster_folded_needs_base(folded) && (base == NULL || base->value_revision != folded->row.value_revision)) {
        return refuse_value(folded->resource, error);
    }
    *row = folded->row;
    if (aster_folded_needs_base(folded)) {
        row->value = base->value;
    }
    return ASTER_OK;
}
