/* What every journal must do, whatever it stores entries in: one list of scenarios (src/journal/journal.h is the
 * contract). */
#ifndef SUPPORT_JOURNAL_SUITE_H
#define SUPPORT_JOURNAL_SUITE_H

#include "support/journal_world.h"

/* Run them all over `subject` as a group of tests called `name`; the number of failures. */
int journal_suite_run(const char *name, const struct journal_subject *subject);

#endif
