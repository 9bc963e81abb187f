/* The bytes of a journal entry: a version, then records in the order of the decisions, then a 64-bit check. A record is
 * the whole row as it is after a decision (docs/adr/0011-row-images-in-the-journal.md), the removal of a row, or an
 * event of the history. Small: integers take the bytes that they need, and a name that the records before have just
 * mentioned takes one. Equal content encodes to equal bytes, and no other bytes decode to it.
 *
 * Pure, but for the builder's memory. Not thread-safe: a builder or a reader is used by one thread at a time. */
#ifndef JOURNAL_ENTRY_H
#define JOURNAL_ENTRY_H

#include <stdbool.h>

#include "aster/serializer.h"
#include "aster/transition.h"

#define ASTER_ENTRY_VERSION 1
#define ASTER_ENTRY_MAX                                                                                                \
    ((size_t)1 << 20) /* bytes of a sealed entry; a record with the longest value fits many times                      \
                       */

enum aster_record_kind { ASTER_RECORD_ROW = 1, ASTER_RECORD_REMOVED = 2, ASTER_RECORD_EVENT = 3 };

struct aster_record {
    enum aster_record_kind kind;
    struct aster_bytes resource; /* ROW, REMOVED */
    struct aster_row row;        /* ROW */
    /* ROW: the value is that of the image before, of the same value_revision (none at revision 0); row.value is empty
     */
    bool keep_value;
    int64_t floor;            /* REMOVED: the floor of all resources from now on, at least the removed row's epoch */
    struct aster_event event; /* EVENT, with its revision */
};

/* A name that can be referred to: where it stands in the entry. */
struct aster_entry_name {
    size_t at;
    size_t size; /* 0 = none yet */
};
#define ASTER_ENTRY_NAMES 4

struct aster_entry_builder {
    unsigned char *data;
    size_t used;
    size_t capacity;
    size_t records;
    struct aster_entry_name names[ASTER_ENTRY_NAMES];
};

/* A zero builder is empty and ready. fini() frees; the builder is zero again. */
void aster_entry_builder_fini(struct aster_entry_builder *builder);
/* Empty it and keep its memory. */
void aster_entry_builder_reset(struct aster_entry_builder *builder);

/* Append a record; its bytes are copied. Errors, with the builder unchanged: ASTER_ERR_INVALID (no such row or event
 * can exist), ASTER_ERR_LIMIT (the entry would exceed ASTER_ENTRY_MAX: seal it and begin another), ASTER_ERR_NOMEM. */
aster_status aster_entry_add(struct aster_entry_builder *builder, const struct aster_record *record,
                             struct aster_error *error);

/* Add the check and give the entry, a view of the builder's memory until it is reset or finished; nothing can be added
 * meanwhile. Errors: ASTER_ERR_INVALID (no record). */
aster_status aster_entry_seal(struct aster_entry_builder *builder, struct aster_bytes *entry,
                              struct aster_error *error);

struct aster_entry_reader {
    const unsigned char *data;
    size_t size; /* without the check */
    size_t used;
    struct aster_entry_name names[ASTER_ENTRY_NAMES];
};

/* Check the seal. Errors: ASTER_ERR_CORRUPT (cut off, or a failed check), ASTER_ERR_VERSION (newer than this build). */
aster_status aster_entry_open(struct aster_bytes entry, struct aster_entry_reader *reader, struct aster_error *error);

/* The next record, whose views borrow from the entry; *found is false behind the last one. Errors: ASTER_ERR_CORRUPT
 * (an unknown kind, lengths that do not add up, content that breaks a rule). */
aster_status aster_entry_next(struct aster_entry_reader *reader, struct aster_record *record, bool *found,
                              struct aster_error *error);

#endif
