/* Drives a fuzz target without libFuzzer: first every file of its corpus, then argv[1] mutations of them.
 * Deterministic. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/seed.h"

enum { INPUT_MAX = 4096, FILES_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    size_t size;
    uint8_t data[INPUT_MAX];
};

static struct input corpus[FILES_MAX];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* By name, so that a run does not depend on the order of the directory. Returns how many; 0 on failure. */
static size_t read_corpus(const char *directory)
{
    struct dirent **names = NULL;
    size_t count = 0;
    int found = scandir(directory, &names, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char path[PATH_MAX + NAME_MAX + 2];
        snprintf(path, sizeof path, "%s/%s", directory, names[i]->d_name);
        FILE *file = names[i]->d_name[0] != '.' && count < FILES_MAX ? fopen(path, "rb") : NULL;
        if (file != NULL) {
            corpus[count].size = fread(corpus[count].data, 1, INPUT_MAX, file);
            count++;
            fclose(file);
        }
        free(names[i]);
    }
    free(names);
    return count;
}

static void mutate(struct input *input, uint64_t *state)
{
    uint64_t changes = 1 + next_random(state) % 4;
    while (changes-- > 0) {
        uint64_t random = next_random(state);
        size_t at = input->size > 0 ? (size_t)(random >> 8) % input->size : 0;
        switch (random % 4) {
        case 0:
            input->size = at; /* cut */
            break;
        case 1:
            if (input->size < INPUT_MAX) {
                input->data[input->size++] = (uint8_t)(random >> 40);
            }
            break;
        default:
            if (input->size > 0) {
                input->data[at] ^= (uint8_t)(1U << (random >> 40) % 8);
            }
            break;
        }
    }
}

/* An exact heap copy, so that a sanitizer sees the first byte that is read beyond the input. */
static void run(const struct input *input)
{
    uint8_t *copy = malloc(input->size > 0 ? input->size : 1);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, input->data, input->size);
    LLVMFuzzerTestOneInput(copy, input->size);
    free(copy);
}

int main(int argc, char **argv)
{
    const char *source = getenv("ASTER_SOURCE");
    const char *slash = strrchr(argv[0], '/');
    char directory[PATH_MAX];
    long mutations = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    uint64_t state = test_seed(UINT64_C(0x9e3779b97f4a7c15));
    snprintf(directory, sizeof directory, "%s/tests/fuzz/corpus/%s", source != NULL ? source : ".",
             slash != NULL ? slash + 1 : argv[0]);
    size_t count = read_corpus(directory);
    if (count == 0) {
        fprintf(stderr, "no corpus in %s: set ASTER_SOURCE\n", directory);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        run(&corpus[i]);
    }
    for (long i = 0; i < mutations; i++) {
        struct input input = corpus[next_random(&state) % count];
        mutate(&input, &state);
        run(&input);
    }
    printf("%zu corpus files and %ld mutations\n", count, mutations);
    return 0;
}
