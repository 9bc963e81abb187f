#include "quic/cid_table.h"

#include <stdlib.h>

#include "base/error.h"
#include "platform/entropy.h"

#define BUCKETS_AT_START 64

aster_status aster_cid_table_init(struct aster_cid_table *table, struct aster_error *error)
{
    memset(table, 0, sizeof *table);
    aster_status status = aster_entropy_fill(&table->key, sizeof table->key, error);
    if (status != ASTER_OK) {
        return status;
    }
    table->buckets = calloc(BUCKETS_AT_START, sizeof *table->buckets);
    if (table->buckets == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for connection ids");
    }
    table->bucket_count = BUCKETS_AT_START;
    return ASTER_OK;
}

void aster_cid_table_fini(struct aster_cid_table *table)
{
    free(table->buckets);
    memset(table, 0, sizeof *table);
}

static struct aster_cid_entry **bucket_of(const struct aster_cid_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

struct aster_connection *aster_cid_table_find(const struct aster_cid_table *table, const uint8_t *data, size_t size)
{
    uint64_t hash = aster_siphash(&table->key, (struct aster_bytes){data, size});
    for (struct aster_cid_entry *entry = *bucket_of(table, hash); entry != NULL; entry = entry->next_in_bucket) {
        if (entry->hash == hash && entry->cid.datalen == size && memcmp(entry->cid.data, data, size) == 0) {
            return entry->connection;
        }
    }
    return NULL;
}

/* Failing to grow only makes the chains longer. */
static void grow(struct aster_cid_table *table)
{
    size_t count = table->bucket_count * 2;
    struct aster_cid_entry **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return;
    }
    for (size_t i = 0; i < table->bucket_count; i++) {
        struct aster_cid_entry *entry = table->buckets[i];
        while (entry != NULL) {
            struct aster_cid_entry *next = entry->next_in_bucket;
            struct aster_cid_entry **place = &buckets[entry->hash & (count - 1)];
            entry->next_in_bucket = *place;
            *place = entry;
            entry = next;
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = count;
}

aster_status aster_cid_table_add(struct aster_cid_table *table, const ngtcp2_cid *cid,
                                 struct aster_connection *connection, struct aster_cid_entry **list)
{
    struct aster_cid_entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return ASTER_ERR_NOMEM;
    }
    if (table->count >= table->bucket_count) {
        grow(table);
    }
    entry->connection = connection;
    entry->cid = *cid;
    entry->hash = aster_siphash(&table->key, (struct aster_bytes){cid->data, cid->datalen});
    struct aster_cid_entry **place = bucket_of(table, entry->hash);
    entry->next_in_bucket = *place;
    *place = entry;
    entry->next_of_connection = *list;
    *list = entry;
    table->count++;
    return ASTER_OK;
}

static void unlink_from_bucket(struct aster_cid_table *table, struct aster_cid_entry *entry)
{
    struct aster_cid_entry **at = bucket_of(table, entry->hash);
    while (*at != entry) {
        at = &(*at)->next_in_bucket;
    }
    *at = entry->next_in_bucket;
    table->count--;
}

void aster_cid_table_remove(struct aster_cid_table *table, const ngtcp2_cid *cid, struct aster_cid_entry **list)
{
    for (struct aster_cid_entry **at = list; *at != NULL; at = &(*at)->next_of_connection) {
        struct aster_cid_entry *entry = *at;
        if (ngtcp2_cid_eq(&entry->cid, cid)) {
            *at = entry->next_of_connection;
            unlink_from_bucket(table, entry);
            free(entry);
            return;
        }
    }
}

void aster_cid_table_clear(struct aster_cid_table *table, struct aster_cid_entry **list)
{
    while (*list != NULL) {
        struct aster_cid_entry *entry = *list;
        *list = entry->next_of_connection;
        unlink_from_bucket(table, entry);
        free(entry);
    }
}
