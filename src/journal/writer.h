/* The thread between the memory serializer and a journal: it collects changes while an append is under way, appends
 * what was collected as one entry (group commit), and has all of it answered, or taken back when the append failed. */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include "journal/journal.h"
#include "journal/journalled.h"
#include "serializer/memory/commit.h"

struct aster_writer;

/* `options` is looked at during the call and its functions are called by the thread. Errors: ASTER_ERR_NOMEM. */
aster_status aster_writer_create(const struct aster_journalled_options *options, struct aster_writer **writer,
                                 struct aster_error *error);
/* What the memory serializer hands its changes to. */
struct memory_committer aster_writer_committer(struct aster_writer *writer);

/* Begin: the journal was loaded into `memory`, `position` is that of its last entry and `revision` the greatest of its
 * events. The journal stays the caller's, and is only used by the writer from now on. Errors: ASTER_ERR_IO (no thread).
 */
aster_status aster_writer_start(struct aster_writer *writer, struct memory *memory, const struct aster_journal *journal,
                                int64_t position, int64_t revision, struct aster_error *error);
/* Append what was taken, as far as the journal lets, and end the thread. No change may be taken any more. */
void aster_writer_stop(struct aster_writer *writer);
void aster_writer_destroy(struct aster_writer *writer); /* NULL is legal; after stop() */

/* Until release(), changes gather without waking the thread, so that they share an append. Any thread; nestable. */
void aster_writer_hold(struct aster_writer *writer);
void aster_writer_release(struct aster_writer *writer);

/* Append once, on the calling thread; false when there is nothing to append. Only without a thread. */
bool aster_writer_step(struct aster_writer *writer);

struct aster_journalled_counts aster_writer_counts(struct aster_writer *writer);

#endif
