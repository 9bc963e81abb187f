#include "cli/nearest.h"

#include <string.h>

#define WORD_MAX 32

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t aster_word_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0];
    size_t *last = rows[1];
    size_t *now = rows[2];
    size_t width = strlen(b);
    if (strlen(a) > WORD_MAX || width > WORD_MAX) {
        return WORD_MAX + 1;
    }
    for (size_t j = 0; j <= width; j++) {
        last[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        now[0] = i;
        for (size_t j = 1; j <= width; j++) {
            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[width];
}

void aster_nearest_offer(struct aster_nearest *nearest, const char *word)
{
    size_t distance = aster_word_distance(nearest->wanted, word);
    size_t near_enough = strlen(word) > 4 ? 2 : 1;
    if (distance <= near_enough && (nearest->found == NULL || distance < nearest->distance)) {
        nearest->found = word;
        nearest->distance = distance;
    }
}
