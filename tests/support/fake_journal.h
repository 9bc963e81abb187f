/* A journal in the test's memory. What was stored outlives the journal, as a file outlives a process; appends fail as
 * the test says. */
#ifndef SUPPORT_FAKE_JOURNAL_H
#define SUPPORT_FAKE_JOURNAL_H

#include <pthread.h>

#include "journal/journal.h"

enum fake_append {
    FAKE_APPEND_STORE,
    FAKE_APPEND_FAIL,        /* ASTER_ERR_IO, not stored */
    FAKE_APPEND_UNKNOWN,     /* ASTER_ERR_INDETERMINATE, stored */
    FAKE_APPEND_UNKNOWN_LOST /* ASTER_ERR_INDETERMINATE, not stored */
};

#define FAKE_ROWS_MAX 64
#define FAKE_EVENTS_MAX 16384

struct fake_row {
    char name[64];
    char holder[64];
    char value[64];
    struct aster_row row; /* its views point here; the applied request is forgotten but for the id */
    char caller[64];
    char last_holder[64];
};

struct fake_store {
    pthread_mutex_t lock;
    unsigned char **entries; /* [0] is position 1 */
    size_t *sizes;
    size_t count;
    size_t capacity;
    enum fake_append next; /* what comes of the appends from now on */
    int appends;           /* tries */
    int checkpoints;
};

void fake_store_init(struct fake_store *store);
void fake_store_fini(struct fake_store *store);
/* A journal over the store. Its load() gives every event of the store. */
struct aster_journal fake_journal(struct fake_store *store);

/* What a load() would say now. */
struct fake_image {
    struct fake_row rows[FAKE_ROWS_MAX];
    size_t count;
    int64_t floor;
};
void fake_store_read(struct fake_store *store, struct fake_image *image);
/* NULL: there is no such row. */
const struct fake_row *fake_image_find(const struct fake_image *image, struct aster_bytes resource);

#endif
