/* A journal whose content follows from its last position, so that whatever it tells can be checked: entry p sets the
 * row of resource p % JOURNAL_COUNT_ROWS to epoch p, and records event p. */
#ifndef SUPPORT_JOURNAL_COUNT_H
#define SUPPORT_JOURNAL_COUNT_H

#include "support/journal_world.h"

#define JOURNAL_COUNT_ROWS 7
#define JOURNAL_COUNT_HISTORY 50

/* The sealed entry for `position`, in `builder`, whose value has `value_size` bytes (at least 32). */
struct aster_bytes journal_count_entry(struct aster_entry_builder *builder, int64_t position, size_t value_size);

/* Load, assert that what is told is that of its last position, and return that. */
int64_t journal_count_load(const struct aster_journal *journal);

#endif
