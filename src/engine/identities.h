/* Interned identities: each distinct holder is kept once, counted, and named by a small number. Id 0 is "nobody". */
#ifndef ENGINE_IDENTITIES_H
#define ENGINE_IDENTITIES_H

#include <stdbool.h>

#include "engine/siphash.h"

struct aster_identity; /* one interned identity */

struct aster_identities {
    struct aster_identity **by_id; /* index 0 unused */
    uint32_t *slots;               /* open addressing over ids; 0 = empty */
    uint32_t capacity;             /* of by_id */
    uint32_t next_id;              /* first id never given out */
    uint32_t free_id;              /* head of the chain of returned ids, 0 = none */
    uint32_t slot_count;           /* power of two, or 0 */
    uint32_t count;                /* identities alive */
    size_t bytes;
    struct aster_hash_key key;
};

void aster_identities_init(struct aster_identities *set, const struct aster_hash_key *key);
void aster_identities_fini(struct aster_identities *set);

/* The id of `bytes`, with one more reference; the empty view gives 0. Returns false when out of memory: unchanged. */
bool aster_identities_take(struct aster_identities *set, struct aster_bytes bytes, uint32_t *id);

/* One more reference to an id that has one. Id 0 is legal. */
void aster_identities_share(struct aster_identities *set, uint32_t id);

/* Give a reference back; the last one frees. Id 0 is legal. */
void aster_identities_drop(struct aster_identities *set, uint32_t id);

/* The bytes of an id, valid while a reference is held; empty for 0. */
struct aster_bytes aster_identities_bytes(const struct aster_identities *set, uint32_t id);

/* References of an id, for invariant checks; 0 for unknown ids. */
uint32_t aster_identities_references(const struct aster_identities *set, uint32_t id);

#endif
