/* Where the grantor makes its decisions durable: an ordered list of entries, appended one by one, which folds into
 * rows. One implementation per folder (src/journal/sqlite). An entry (journal/entry.h) is what one group commit wrote:
 * many changed rows and their events, sealed, and opaque to whoever stores it.
 *
 * A journal is used by one thread at a time and may block. Order of use: load() once, then append() and checkpoint(),
 * then destroy(). Its positions count up from 1 without gaps. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "aster/serializer.h"
#include "aster/transition.h"

/* What load() tells, in this order: the floor once; each row once, whole, in no particular order; the kept events,
 * oldest first. Views live during the call only. A status other than ASTER_OK ends the load with that status. */
struct aster_journal_loading {
    void *user;
    aster_status (*floor)(void *user, int64_t floor, struct aster_error *error);
    aster_status (*row)(void *user, struct aster_bytes resource, const struct aster_row *row,
                        struct aster_error *error);
    aster_status (*event)(void *user, const struct aster_event *event, struct aster_error *error);
};

struct aster_journal_ops {
    size_t struct_size;
    const char *name; /* static, lower case */

    /* Tell all that was ever appended and not dropped as too old, and the position of the last entry (0 = none). Writes
     * nothing, so it works on a full disk. Errors: ASTER_ERR_CORRUPT or ASTER_ERR_VERSION (an entry or a row cannot be
     * read: it is never skipped), ASTER_ERR_IO, ASTER_ERR_NOMEM, what a callback returned. */
    aster_status (*load)(void *self, const struct aster_journal_loading *into, int64_t *last_position,
                         struct aster_error *error);

    /* Store a sealed entry at the position after the last one that succeeded, durably: ASTER_OK means that it survives
     * a power cut. All or nothing. After any failure the same position comes again and replaces what may be there.
     * ASTER_ERR_INDETERMINATE: it may or may not be found there by a later load(). Any other error: it will not.
     * ASTER_ERR_INVALID: not the position that is next. */
    aster_status (*append)(void *self, int64_t position, struct aster_bytes entry, struct aster_error *error);

    /* One bounded step of folding entries that were appended with success into rows, and dropping them; *more tells
     * whether another one is worth taking now. Call it after every append, and while it says more and nothing waits to
     * be appended: the journal knows what a step costs, and does nothing as long as too little has piled up. A failure
     * loses nothing; the step is taken again by a later call. */
    aster_status (*checkpoint)(void *self, bool *more, struct aster_error *error);

    /* Close. What is not folded is found by the next load. NULL is legal. */
    void (*destroy)(void *self);
};

/* A journal and its vtable, owned together. */
struct aster_journal {
    const struct aster_journal_ops *ops;
    void *self;
};

#endif
