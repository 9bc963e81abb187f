/* The serializer that asterd serves by default: the engine in memory, and a journal that every change of ownership is
 * in before it is answered. Renewals are answered from memory. What the journal has is found again by the next open;
 * held rows get a full ttl then, and no epoch advances. It offers no fenced write other than put. */
#ifndef JOURNAL_JOURNALLED_H
#define JOURNAL_JOURNALLED_H

#include "aster/memory.h"
#include "journal/journal.h"

struct aster_journalled_options {
    size_t struct_size;
    struct aster_memory_options memory;
    /* Optional. The answers of one append are about to be given, and have been given; on the thread that gives them. */
    void (*answering)(bool begin, void *user);
    /* Optional. The journal cannot be appended to: told once, and once more with ASTER_OK when it can again. */
    void (*failing)(aster_status status, const struct aster_error *error, void *user);
    void *user;
    bool stepped; /* no thread: the owner calls aster_journalled_step(), for tests and simulation */
};

#define ASTER_JOURNALLED_OPTIONS_INIT                                                                                  \
    {                                                                                                                  \
        sizeof(struct aster_journalled_options), ASTER_MEMORY_OPTIONS_INIT, NULL, NULL, NULL, false                    \
    }

/* Load the journal and open. On success the serializer owns the journal and destroys it at its end; on failure it is
 * still the caller's. Errors: those of the journal's load(), ASTER_ERR_INVALID (options), ASTER_ERR_NOMEM, ASTER_ERR_IO
 * (no thread, no entropy).
 *
 * Its answers: a change that could not be appended is ASTER_ERR_IO, nothing was applied; or ASTER_ERR_INDETERMINATE,
 * when a crash before the next append may bring it to light. */
aster_status aster_journalled_open(const struct aster_journalled_options *options, const struct aster_journal *journal,
                                   struct aster_serializer **serializer, struct aster_error *error);

struct aster_journalled_counts {
    uint64_t batches; /* appends that succeeded, each one sync */
    uint64_t changes; /* changed rows in them */
    uint64_t bytes;
    uint64_t append_ns; /* spent in append() */
    uint64_t failures;  /* appends that failed; nothing of them is there */
    uint64_t unknown;   /* appends of which that is not known */
    uint64_t undone;    /* changed rows that were taken back */
    uint64_t waiting;   /* changes and answers that wait for an append now */
    uint64_t lost_events;
    uint64_t rows_loaded;
    bool failing; /* the last append failed */
};

/* All zero for another serializer. Any thread. */
struct aster_journalled_counts aster_journalled_counts(struct aster_serializer *serializer);

/* Append what waits, on the calling thread; false when nothing does. Only for a stepped one. */
bool aster_journalled_step(struct aster_serializer *serializer);

#endif
