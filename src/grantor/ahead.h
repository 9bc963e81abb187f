/* Rows read ahead of whoever lists page by page: a store may have to walk over everything for each question, so later
 * pages are answered from what the question before has found, for a second or four times as long as it took. One thread
 * at a time. */
#ifndef GRANTOR_AHEAD_H
#define GRANTOR_AHEAD_H

#include "aster/serializer.h"

#define GRANTOR_AHEAD_ROWS 16384 /* that are kept at most */

struct grantor_ahead;

/* NULL when out of memory. */
struct grantor_ahead *grantor_ahead_create(void);
void grantor_ahead_destroy(struct grantor_ahead *ahead); /* NULL is legal */

/* Visit the rows with this prefix and a name after `after`, in byte order, until visit() returns false. `first` is how
 * many rows the visitor will look at, if it is not hindered. Errors: as aster_list(). */
aster_status grantor_ahead_list(struct grantor_ahead *ahead, struct aster_serializer *serializer,
                                struct aster_bytes prefix, struct aster_bytes after, size_t first,
                                aster_visit_row visit, void *user, struct aster_error *error);

#endif
