/* A hash index with a fixed number of buckets over nodes that live inside their owners. No thread-safety of its own. */
#ifndef REMOTE_INDEX_H
#define REMOTE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "aster/status.h"

struct remote_node {
    uint64_t key;
    struct remote_node *next;
};

struct remote_index {
    struct remote_node **buckets;
    size_t mask;
};

/* Good for about `expected` nodes. Errors: ASTER_ERR_NOMEM. */
aster_status remote_index_init(struct remote_index *index, size_t expected, struct aster_error *error);
void remote_index_fini(struct remote_index *index); /* zeroed is legal */
/* The key must not be in it. */
void remote_index_add(struct remote_index *index, struct remote_node *node, uint64_t key);
struct remote_node *remote_index_find(const struct remote_index *index, uint64_t key);
void remote_index_remove(struct remote_index *index, struct remote_node *node);
/* The node after `node` in no particular order, the first for NULL; NULL at the end. */
struct remote_node *remote_index_next(const struct remote_index *index, const struct remote_node *node);

#endif
