#include "serializer/remote/index.h"

#include <stdlib.h>

#include "base/error.h"

#define BUCKETS_LEAST 64

aster_status remote_index_init(struct remote_index *index, size_t expected, struct aster_error *error)
{
    size_t count = BUCKETS_LEAST;
    while (count < expected / 2) {
        count *= 2;
    }
    struct remote_node **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for an index of %zu requests", expected);
    }
    *index = (struct remote_index){buckets, count - 1};
    return ASTER_OK;
}

void remote_index_fini(struct remote_index *index)
{
    free(index->buckets);
}

/* Keys are addresses and counters of our own: nobody chooses them against us. */
static size_t bucket_of(const struct remote_index *index, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & index->mask;
}

void remote_index_add(struct remote_index *index, struct remote_node *node, uint64_t key)
{
    struct remote_node **bucket = &index->buckets[bucket_of(index, key)];
    node->key = key;
    node->next = *bucket;
    *bucket = node;
}

struct remote_node *remote_index_find(const struct remote_index *index, uint64_t key)
{
    struct remote_node *node = index->buckets[bucket_of(index, key)];
    while (node != NULL && node->key != key) {
        node = node->next;
    }
    return node;
}

void remote_index_remove(struct remote_index *index, struct remote_node *node)
{
    struct remote_node **at = &index->buckets[bucket_of(index, node->key)];
    while (*at != node) {
        at = &(*at)->next;
    }
    *at = node->next;
}

struct remote_node *remote_index_next(const struct remote_index *index, const struct remote_node *node)
{
    if (node != NULL && node->next != NULL) {
        return node->next;
    }
    size_t bucket = node != NULL ? bucket_of(index, node->key) + 1 : 0;
    while (bucket <= index->mask && index->buckets[bucket] == NULL) {
        bucket++;
    }
    return bucket <= index->mask ? index->buckets[bucket] : NULL;
}
