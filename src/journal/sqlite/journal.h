/* The journal in one SQLite file, which this process owns while it is open: nobody else can read or write it. Appending
 * is one insertion and one sync of a log whose space is written before and used again and again. */
#ifndef JOURNAL_SQLITE_JOURNAL_H
#define JOURNAL_SQLITE_JOURNAL_H

#include "journal/journal.h"

struct aster_sqlite_journal_options {
    size_t struct_size;
    int64_t history_max; /* events kept: the newest; 0 = none */
};

#define ASTER_SQLITE_JOURNAL_OPTIONS_INIT                                                                              \
    {                                                                                                                  \
        sizeof(struct aster_sqlite_journal_options), 10000                                                             \
    }

/* Open the journal in the file `path`, or make one if nothing is there. `options` may be NULL. The journal is the
 * caller's: journal->ops->destroy(journal->self). Errors: ASTER_ERR_BUSY (another process owns it; the message names
 * that process), ASTER_ERR_INVALID (no regular file, another program's database or a store of leases, a network file
 * system), ASTER_ERR_VERSION (made by a newer Aster), ASTER_ERR_CORRUPT, ASTER_ERR_FORKED, ASTER_ERR_IO,
 * ASTER_ERR_NOMEM. */
aster_status aster_sqlite_journal_open(const char *path, const struct aster_sqlite_journal_options *options,
                                       struct aster_journal *journal, struct aster_error *error);

#endif
