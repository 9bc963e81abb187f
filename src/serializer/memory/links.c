#include "serializer/memory/links.h"

#include <stdlib.h>

#define FIRST_BUCKETS 16

static struct memory_link **bucket_of(const struct memory_links *links, uint64_t hash)
{
    return &links->buckets[hash & (links->bucket_count - 1)];
}

bool aster_memory_links_reserve(struct memory_links *links)
{
    if (links->count < links->bucket_count) {
        return true;
    }
    struct memory_links grown = {NULL, links->bucket_count == 0 ? FIRST_BUCKETS : links->bucket_count * 2,
                                 links->count};
    grown.buckets = calloc(grown.bucket_count, sizeof(struct memory_link *));
    if (grown.buckets == NULL) {
        return false;
    }
    for (size_t i = 0; i < links->bucket_count; i++) {
        struct memory_link *link = links->buckets[i];
        while (link != NULL) {
            struct memory_link *next = link->next;
            struct memory_link **bucket = bucket_of(&grown, link->hash);
            link->next = *bucket;
            *bucket = link;
            link = next;
        }
    }
    free(links->buckets);
    *links = grown;
    return true;
}

void aster_memory_links_insert(struct memory_links *links, struct memory_link *link, uint64_t hash)
{
    struct memory_link **bucket = bucket_of(links, hash);
    link->hash = hash;
    link->next = *bucket;
    *bucket = link;
    links->count++;
}

void aster_memory_links_remove(struct memory_links *links, struct memory_link *link)
{
    struct memory_link **at = bucket_of(links, link->hash);
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    links->count--;
}

struct memory_link *aster_memory_links_chain(const struct memory_links *links, uint64_t hash)
{
    return links->bucket_count == 0 ? NULL : *bucket_of(links, hash);
}

void aster_memory_links_fini(struct memory_links *links)
{
    free(links->buckets);
}
