/* A growing chained hash index of intrusive links; the owner compares keys. */
#ifndef MEMORY_LINKS_H
#define MEMORY_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_link {
    struct memory_link *next;
    uint64_t hash;
};

struct memory_links {
    struct memory_link **buckets;
    size_t bucket_count; /* power of two, 0 at first */
    size_t count;
};

/* Room for one more; false = out of memory and nothing changed. */
bool aster_memory_links_reserve(struct memory_links *links);
void aster_memory_links_insert(struct memory_links *links, struct memory_link *link, uint64_t hash); /* after reserve */
void aster_memory_links_remove(struct memory_links *links, struct memory_link *link);
/* The first link of the chain where `hash` belongs; follow ->next. NULL at the end. */
struct memory_link *aster_memory_links_chain(const struct memory_links *links, uint64_t hash);
void aster_memory_links_fini(struct memory_links *links);

#endif
