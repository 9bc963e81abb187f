/* A journal under test: what to append in one line each, and what a load told. Every call fails the test when the
 * journal does not do as it should. */
#ifndef SUPPORT_JOURNAL_WORLD_H
#define SUPPORT_JOURNAL_WORLD_H

#include "journal/entry.h"
#include "journal/journal.h"

/* Storage that journals are opened on, one after the other. */
struct journal_subject {
    void *user;
    aster_status (*open)(void *user, int64_t history_max, struct aster_journal *journal, struct aster_error *error);
    void (*wipe)(void *user); /* nothing is stored any more; no journal is open */
};

struct journal_told_row {
    struct aster_bytes resource;
    struct aster_row row; /* its views are copies */
};

/* What one load told, copied; rows in the order of their names. */
struct journal_told {
    int64_t floor;
    int64_t last_position;
    struct journal_told_row *rows;
    size_t row_count;
    struct aster_event *events; /* without names */
    size_t event_count;
    char **copies;
    size_t copy_count;
};

/* Load into `told`, which must be zero or finished; the answer of load(). */
aster_status journal_told_load(struct journal_told *told, const struct aster_journal *journal,
                               struct aster_error *error);
void journal_told_fini(struct journal_told *told);
const struct aster_row *journal_told_find(const struct journal_told *told, const char *resource); /* NULL = not told */

struct journal_world {
    const struct journal_subject *subject;
    int64_t history_max;
    struct aster_journal journal;
    struct journal_told told; /* by the last load */
    struct aster_entry_builder entry;
    int64_t position; /* of the last entry */
    int64_t revision; /* of the last event */
};

/* Over empty storage, open and loaded. fini() closes it and leaves the storage alone. */
void journal_world_init(struct journal_world *world, const struct journal_subject *subject, int64_t history_max);
void journal_world_fini(struct journal_world *world);
/* Close, open again, load. */
void journal_world_reopen(struct journal_world *world);
void journal_world_close(struct journal_world *world);
void journal_world_open(struct journal_world *world);

/* Add to the next entry. A row held by "holder" at `epoch`; value NULL keeps the one of `value_revision`. */
void journal_world_row(struct journal_world *world, const char *resource, int64_t epoch, int64_t value_revision,
                       const char *value);
void journal_world_removed(struct journal_world *world, const char *resource, int64_t floor);
void journal_world_event(struct journal_world *world, const char *resource, int64_t epoch);

/* Append what was added, at the next position. try() gives the answer and keeps what was added after a failure. */
void journal_world_append(struct journal_world *world);
aster_status journal_world_try(struct journal_world *world, struct aster_error *error);
/* Take steps until none is worth taking. */
void journal_world_checkpoint(struct journal_world *world);

#endif
