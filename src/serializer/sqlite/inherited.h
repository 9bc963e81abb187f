/* Which files this process has open, so that a forked child can be told which of them it must not open: SQLite's
 * record of a file's locks is copied by fork(), the locks themselves are not, and the child would trust the copy.
 * exec() ends the danger. Lock-free, because a child may find any lock taken. */
#ifndef SQLITE_INHERITED_H
#define SQLITE_INHERITED_H

#include <stdint.h>

#include "aster/status.h"
#include "platform/files.h"

struct aster_opened; /* one open store */

/* Note that the file is open in the process of `generation` (platform/fork.h). Errors: ASTER_ERR_FORKED (it is open
 * from before the fork), ASTER_ERR_NOMEM. */
aster_status aster_opened_note(const struct aster_file_identity *file, uint64_t generation,
                               struct aster_opened **opened, struct aster_error *error);

/* It is closed. NULL is legal. */
void aster_opened_forget(struct aster_opened *opened);

#endif
