/* What entries come to: the last image of each resource that they mention. Pure, but for its memory; not thread-safe.
 */
#ifndef JOURNAL_ENTRY_FOLD_H
#define JOURNAL_ENTRY_FOLD_H

#include "engine/siphash.h"
#include "journal/entry.h"

struct aster_entry_fold;

/* The last image of one resource. Its views live as long as the fold and until the next record of that resource. */
struct aster_folded {
    struct aster_bytes resource;
    bool removed;
    bool value_kept; /* the value is that of the row from before the first entry; row.value is empty */
    struct aster_row row;
};

/* `key` is secret and random: clients choose the names. */
aster_status aster_entry_fold_create(const struct aster_hash_key *key, struct aster_entry_fold **fold,
                                     struct aster_error *error);
/* NULL is legal. */
void aster_entry_fold_destroy(struct aster_entry_fold *fold);

/* Take in the next record, in the order of the journal; its bytes are copied. Events are ignored. Errors, after
 * which the fold is of no use: ASTER_ERR_NOMEM, ASTER_ERR_CORRUPT (a value is kept that never was stored). */
aster_status aster_entry_fold_add(struct aster_entry_fold *fold, const struct aster_record *record,
                                  struct aster_error *error);

/* The greatest floor of a removal; 0 = none. */
int64_t aster_entry_fold_floor(const struct aster_entry_fold *fold);
/* The resources that were mentioned, each once, in no particular order. */
size_t aster_entry_fold_count(const struct aster_entry_fold *fold);
const struct aster_folded *aster_entry_fold_at(const struct aster_entry_fold *fold, size_t index);
/* NULL = not mentioned. */
const struct aster_folded *aster_entry_fold_find(const struct aster_entry_fold *fold, struct aster_bytes resource);

/* Must aster_folded_row() be given the row from before? */
bool aster_folded_needs_base(const struct aster_folded *folded);
/* The whole row, of one that is not removed. `base` is the stored row from before the first entry, NULL when there is
 * none; the views of `row` borrow from both. Errors: ASTER_ERR_CORRUPT (as above). */
aster_status aster_folded_row(const struct aster_folded *folded, const struct aster_row *base, struct aster_row *row,
                              struct aster_error *error);

#endif
