/* Nodes that are admitted, in memory of their own. */
#ifndef GRANTOR_NODES_H
#define GRANTOR_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/nodes.h"

struct grantor_texts {
    char **items;
    size_t count;
};

/* One peer. */
struct grantor_node {
    char *id;   /* the identity: a node id in key mode, a SPIFFE id in CA mode */
    char *name; /* display only; or NULL */
    struct grantor_texts roles;
    struct grantor_texts resources; /* prefixes of the names it may use; none = all */
    bool removed;                   /* not admitted, whatever another list says */
};

/* Ascending by id, each once. Zeroed is empty. */
struct grantor_nodes {
    struct grantor_node *items;
    size_t count;
};

/* A copy in malloc's memory; NULL when out of memory. */
char *grantor_text_copy(struct aster_bytes text);
bool grantor_texts_have(const struct grantor_texts *texts, struct aster_bytes text);
/* One more at the end, copied. Errors: false when out of memory. */
bool grantor_texts_add(struct grantor_texts *texts, struct aster_bytes text);
void grantor_texts_drop(struct grantor_texts *texts, struct aster_bytes text);
void grantor_texts_free(struct grantor_texts *texts);

bool grantor_node_copy(const struct grantor_node *from, struct grantor_node *to); /* false when out of memory */
void grantor_node_free(struct grantor_node *node);

void grantor_nodes_sort(struct grantor_nodes *nodes);
const struct grantor_node *grantor_nodes_find(const struct grantor_nodes *nodes, struct aster_bytes id);
/* The first whose id is greater than `id`; NULL at the end. */
const struct grantor_node *grantor_nodes_after(const struct grantor_nodes *nodes, struct aster_bytes id);
/* Take `node` over, in place of the one with its id if there is one. False when out of memory: the caller keeps it. */
bool grantor_nodes_put(struct grantor_nodes *nodes, const struct grantor_node *node);
void grantor_nodes_remove(struct grantor_nodes *nodes, struct aster_bytes id);
bool grantor_nodes_copy(const struct grantor_nodes *from, struct grantor_nodes *to); /* false when out of memory */
void grantor_nodes_free(struct grantor_nodes *nodes);

#endif
