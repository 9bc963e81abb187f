/* What somebody meant who mistyped a word. Pure. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include <stddef.h>

/* Inserted, deleted, replaced or swapped letters between two words; words of more than 32 bytes are far from all. */
size_t aster_word_distance(const char *a, const char *b);

/* Keeps the nearest word that was offered, if it is near enough to be meant. Start from {word, NULL, 0}. */
struct aster_nearest {
    const char *wanted;
    const char *found; /* NULL = none */
    size_t distance;
};
void aster_nearest_offer(struct aster_nearest *nearest, const char *word);

#endif
