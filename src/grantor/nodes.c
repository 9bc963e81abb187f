#include "grantor/nodes.h"

#include <stdlib.h>
#include <string.h>

char *grantor_text_copy(struct aster_bytes text)
{
    char *copy = malloc(text.size + 1);
    if (copy != NULL) {
        memcpy(copy, text.size > 0 ? text.data : "", text.size);
        copy[text.size] = '\0';
    }
    return copy;
}

bool grantor_texts_have(const struct grantor_texts *texts, struct aster_bytes text)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (aster_bytes_equal(aster_text(texts->items[i]), text)) {
            return true;
        }
    }
    return false;
}

bool grantor_texts_add(struct grantor_texts *texts, struct aster_bytes text)
{
    char **items = realloc(texts->items, (texts->count + 1) * sizeof items[0]);
    if (items == NULL) {
        return false;
    }
    texts->items = items;
    items[texts->count] = grantor_text_copy(text);
    if (items[texts->count] == NULL) {
        return false;
    }
    texts->count++;
    return true;
}

void grantor_texts_drop(struct grantor_texts *texts, struct aster_bytes text)
{
    size_t kept = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (aster_bytes_equal(aster_text(texts->items[i]), text)) {
            free(texts->items[i]);
        } else {
            texts->items[kept++] = texts->items[i];
        }
    }
    texts->count = kept;
}

static bool copy_texts(const struct grantor_texts *from, struct grantor_texts *to)
{
    bool copied = true;
    for (size_t i = 0; copied && i < from->count; i++) {
        copied = grantor_texts_add(to, aster_text(from->items[i]));
    }
    return copied;
}

void grantor_texts_free(struct grantor_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
}

bool grantor_node_copy(const struct grantor_node *from, struct grantor_node *to)
{
    struct grantor_node made = {.id = grantor_text_copy(aster_text(from->id)), .removed = from->removed};
    made.name = from->name != NULL ? grantor_text_copy(aster_text(from->name)) : NULL;
    bool copied = made.id != NULL && (from->name == NULL || made.name != NULL) &&
                  copy_texts(&from->roles, &made.roles) && copy_texts(&from->resources, &made.resources);
    if (!copied) {
        grantor_node_free(&made);
        return false;
    }
    *to = made;
    return true;
}

void grantor_node_free(struct grantor_node *node)
{
    free(node->id);
    free(node->name);
    grantor_texts_free(&node->roles);
    grantor_texts_free(&node->resources);
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct grantor_node *)a)->id, ((const struct grantor_node *)b)->id);
}

void grantor_nodes_sort(struct grantor_nodes *nodes)
{
    if (nodes->count > 0) {
        qsort(nodes->items, nodes->count, sizeof nodes->items[0], compare_nodes);
    }
}

static int compare(struct aster_bytes id, const struct grantor_node *node)
{
    return aster_bytes_compare(id, aster_text(node->id));
}

/* Where the first node is whose id is not less. */
static size_t place_of(const struct grantor_nodes *nodes, struct aster_bytes id)
{
    size_t low = 0;
    size_t high = nodes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(id, &nodes->items[middle]) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct grantor_nodes *nodes, size_t place, struct aster_bytes id)
{
    return place < nodes->count && compare(id, &nodes->items[place]) == 0;
}

const struct grantor_node *grantor_nodes_find(const struct grantor_nodes *nodes, struct aster_bytes id)
{
    size_t place = place_of(nodes, id);
    return is_at(nodes, place, id) ? &nodes->items[place] : NULL;
}

const struct grantor_node *grantor_nodes_after(const struct grantor_nodes *nodes, struct aster_bytes id)
{
    size_t place = place_of(nodes, id);
    place += is_at(nodes, place, id) ? 1 : 0;
    return place < nodes->count ? &nodes->items[place] : NULL;
}

bool grantor_nodes_put(struct grantor_nodes *nodes, const struct grantor_node *node)
{
    struct aster_bytes id = aster_text(node->id);
    size_t place = place_of(nodes, id);
    if (is_at(nodes, place, id)) {
        grantor_node_free(&nodes->items[place]);
    } else {
        struct grantor_node *items = realloc(nodes->items, (nodes->count + 1) * sizeof items[0]);
        if (items == NULL) {
            return false;
        }
        nodes->items = items;
        memmove(&items[place + 1], &items[place], (nodes->count - place) * sizeof items[0]);
        nodes->count++;
    }
    nodes->items[place] = *node;
    return true;
}

void grantor_nodes_remove(struct grantor_nodes *nodes, struct aster_bytes id)
{
    size_t place = place_of(nodes, id);
    if (is_at(nodes, place, id)) {
        grantor_node_free(&nodes->items[place]);
        nodes->count--;
        memmove(&nodes->items[place], &nodes->items[place + 1], (nodes->count - place) * sizeof nodes->items[0]);
    }
}

bool grantor_nodes_copy(const struct grantor_nodes *from, struct grantor_nodes *to)
{
    struct grantor_nodes made = {calloc(from->count + 1, sizeof made.items[0]), 0};
    bool copied = made.items != NULL;
    for (size_t i = 0; copied && i < from->count; i++) {
        copied = grantor_node_copy(&from->items[i], &made.items[i]);
        made.count += copied ? 1 : 0;
    }
    if (!copied) {
        grantor_nodes_free(&made);
        return false;
    }
    *to = made;
    return true;
}

void grantor_nodes_free(struct grantor_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        grantor_node_free(&nodes->items[i]);
    }
    free(nodes->items);
}
