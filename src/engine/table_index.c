#include <stdlib.h>

#include "base/alloc.h"
#include "engine/table_internal.h"

#define FIRST_BUCKETS 16U
#define MOVES_PER_CHANGE 4U /* > 1 suffices for a move to end before the next doubling */

static struct aster_entry **bucket_of(const struct aster_index *index, uint32_t hash)
{
    if (index->old != NULL) {
        uint32_t at = hash & (index->old_count - 1);
        if (at >= index->moved) {
            return &index->old[at];
        }
    }
    return &index->buckets[hash & (index->bucket_count - 1)];
}

static void move_some(struct aster_index *index, uint32_t moves)
{
    while (index->old != NULL && moves-- > 0) {
        struct aster_entry *entry = index->old[index->moved];
        index->old[index->moved++] = NULL;
        while (entry != NULL) {
            struct aster_entry *next = entry->next;
            struct aster_entry **bucket = &index->buckets[entry->hash & (index->bucket_count - 1)];
            entry->next = *bucket;
            *bucket = entry;
            entry = next;
        }
        if (index->moved == index->old_count) {
            free(index->old);
            index->old = NULL;
            index->old_count = 0;
        }
    }
}

bool aster_index_reserve(struct aster_index *index)
{
    move_some(index, MOVES_PER_CHANGE);
    if (index->count < index->bucket_count || index->bucket_count == UINT32_C(1) << 31) {
        return true;
    }
    uint32_t bucket_count = index->bucket_count == 0 ? FIRST_BUCKETS : index->bucket_count * 2;
    struct aster_entry **buckets = aster_alloc(bucket_count * sizeof(struct aster_entry *));
    if (buckets == NULL) {
        return false;
    }
    move_some(index, UINT32_MAX);
    memset(buckets, 0, bucket_count * sizeof(struct aster_entry *));
    index->old = index->buckets;
    index->old_count = index->bucket_count;
    index->moved = 0;
    index->buckets = buckets;
    index->bucket_count = bucket_count;
    return true;
}

struct aster_entry *aster_index_find(const struct aster_index *index, uint32_t hash, struct aster_bytes name)
{
    if (index->bucket_count == 0) {
        return NULL;
    }
    struct aster_entry *entry = *bucket_of(index, hash);
    while (entry != NULL && (entry->hash != hash || !aster_bytes_equal(aster_entry_name(entry), name))) {
        entry = entry->next;
    }
    return entry;
}

void aster_index_insert(struct aster_index *index, struct aster_entry *entry)
{
    struct aster_entry **bucket = bucket_of(index, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
    index->count++;
}

void aster_index_remove(struct aster_index *index, struct aster_entry *entry)
{
    struct aster_entry **link = bucket_of(index, entry->hash);
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    index->count--;
}

static bool visit_chains(struct aster_entry *const *buckets, uint32_t count,
                         bool (*visit)(struct aster_entry *entry, void *user), void *user)
{
    for (uint32_t i = 0; i < count; i++) {
        struct aster_entry *entry = buckets[i];
        while (entry != NULL) {
            struct aster_entry *next = entry->next;
            if (!visit(entry, user)) {
                return false;
            }
            entry = next;
        }
    }
    return true;
}

void aster_index_visit(const struct aster_index *index, bool (*visit)(struct aster_entry *entry, void *user),
                       void *user)
{
    if (visit_chains(index->old, index->old_count, visit, user)) {
        visit_chains(index->buckets, index->bucket_count, visit, user);
    }
}

void aster_index_fini(struct aster_index *index)
{
    free(index->old);
    free(index->buckets);
}
