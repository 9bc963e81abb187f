/* How an entry writes a name: as none, as one of those that the records before have mentioned last, or in full. */
#ifndef JOURNAL_ENTRY_NAMES_H
#define JOURNAL_ENTRY_NAMES_H

#include "engine/cursor.h"
#include "journal/entry.h"

enum aster_entry_slot { ASTER_SLOT_RESOURCE, ASTER_SLOT_HOLDER, ASTER_SLOT_LAST_HOLDER, ASTER_SLOT_CALLER };

/* Write `name` and remember it in `slot`. */
void aster_entry_name_write(struct aster_writer *writer, struct aster_entry_name names[ASTER_ENTRY_NAMES],
                            enum aster_entry_slot slot, struct aster_bytes name);

/* Read a name, a view into the input, and remember it. Fails the reader also on what the writer would have written
 * shorter. */
struct aster_bytes aster_entry_name_read(struct aster_reader *reader, struct aster_entry_name names[ASTER_ENTRY_NAMES],
                                         enum aster_entry_slot slot);

#endif
