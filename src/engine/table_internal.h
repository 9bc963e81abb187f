/* What the files of the table share: the compact entry, the index, the deadlines. */
#ifndef ENGINE_TABLE_INTERNAL_H
#define ENGINE_TABLE_INTERNAL_H

#include "engine/identities.h"
#include "engine/table.h"

struct aster_value {
    size_t size;
    char bytes[];
};

/* One row. Ordered by size to waste nothing: a million of these must fit 160 bytes each, index and heap included. */
struct aster_entry {
    int64_t epoch;
    int64_t granted_at_ns;
    int64_t since_ns;
    int64_t lease_revision;
    int64_t value_revision;
    int64_t last_epoch_held;
    int64_t applied_epoch;
    struct aster_entry *next; /* in its bucket */
    struct aster_value *value;
    unsigned char request_id[ASTER_REQUEST_ID_SIZE];
    uint32_t hash;
    uint32_t holder;
    uint32_t last_holder;
    uint32_t applied_caller;
    uint32_t ttl_ms;
    uint32_t deadline_slot; /* index + 1 in the heap of deadlines, 0 = not in it */
    uint16_t name_size;
    uint8_t held : 1;
    uint8_t applied_takeover : 1;
    uint8_t applied_kind;
    char name[];
};

/* The buckets, growing without a pause: while `old` exists, every change moves a few of its chains over. */
struct aster_index {
    struct aster_entry **buckets;
    struct aster_entry **old;
    uint32_t bucket_count; /* power of two */
    uint32_t old_count;
    uint32_t moved; /* buckets of `old` that are empty already */
    size_t count;
};

struct aster_deadline {
    int64_t at_ns; /* never later than the entry's true deadline */
    struct aster_entry *entry;
};

/* A binary heap, lazy: a later deadline moves nothing, the entry is put right when it surfaces. */
struct aster_deadlines {
    struct aster_deadline *heap;
    uint32_t count;
    uint32_t capacity;
    bool off; /* see without_deadlines */
};

struct aster_table {
    struct aster_index index;
    struct aster_deadlines deadlines;
    struct aster_identities identities;
    struct aster_limits limits;
    struct aster_hash_key key;
    int64_t floor;
    size_t held;
    size_t entry_bytes;      /* entries and values */
    size_t image_references; /* of identities, held by images */
    size_t removed_images;   /* rows that may come back: the heap of deadlines keeps room for them */
};

static inline struct aster_bytes aster_entry_name(const struct aster_entry *entry)
{
    return (struct aster_bytes){entry->name, entry->name_size};
}

static inline size_t aster_value_bytes(const struct aster_value *value)
{
    return value == NULL ? 0 : sizeof *value + value->size;
}

size_t aster_entry_size(size_t name_size);
int64_t aster_entry_deadline_ns(const struct aster_entry *entry); /* INT64_MAX when free */
struct aster_row aster_entry_row(const struct aster_table *table, const struct aster_entry *entry);

/* table_image.c. begin(): before anything is changed; false = out of memory. Then one of these, when it is. */
bool aster_image_begin(struct aster_table *table, const struct aster_entry *entry, struct aster_table_image *image);
void aster_image_keep_value(struct aster_table_image *image, struct aster_value *value);
void aster_image_keep_removed(struct aster_table *table, struct aster_entry *entry, struct aster_table_image *image);

bool aster_index_reserve(struct aster_index *index); /* room for one more; false = out of memory */
struct aster_entry *aster_index_find(const struct aster_index *index, uint32_t hash, struct aster_bytes name);
void aster_index_insert(struct aster_index *index, struct aster_entry *entry); /* after reserve */
void aster_index_remove(struct aster_index *index, struct aster_entry *entry);
/* Visit every entry; `next` is read before the visitor runs, so it may free the entry. False stops. */
void aster_index_visit(const struct aster_index *index, bool (*visit)(struct aster_entry *entry, void *user),
                       void *user);
void aster_index_fini(struct aster_index *index);

bool aster_deadlines_reserve(struct aster_deadlines *deadlines, size_t entries);
/* The entry was armed: make sure that it surfaces at its deadline or before. After reserve. */
void aster_deadlines_arm(struct aster_deadlines *deadlines, struct aster_entry *entry);
void aster_deadlines_remove(struct aster_deadlines *deadlines, struct aster_entry *entry);
struct aster_entry *aster_deadlines_pop_expired(struct aster_deadlines *deadlines, int64_t now_ns);

#endif
