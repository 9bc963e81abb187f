#include "engine/identities.h"

#include <stdlib.h>

#include "base/alloc.h"

struct aster_identity {
    uint32_t references; /* 0 = returned; `hash` then holds the next returned id */
    uint32_t hash;
    uint32_t size;
    char bytes[];
};

void aster_identities_init(struct aster_identities *set, const struct aster_hash_key *key)
{
    memset(set, 0, sizeof *set);
    set->key = *key;
    set->next_id = 1;
}

void aster_identities_fini(struct aster_identities *set)
{
    for (uint32_t id = 1; id < set->next_id; id++) {
        free(set->by_id[id]);
    }
    free(set->by_id);
    free(set->slots);
}

static struct aster_bytes bytes_of(const struct aster_identity *identity)
{
    return (struct aster_bytes){identity->bytes, identity->size};
}

/* The slot where `bytes` is, or the empty one where it would go. */
static uint32_t find_slot(const struct aster_identities *set, uint32_t hash, struct aster_bytes bytes)
{
    uint32_t mask = set->slot_count - 1;
    uint32_t at = hash & mask;
    while (set->slots[at] != 0) {
        const struct aster_identity *identity = set->by_id[set->slots[at]];
        if (identity->hash == hash && aster_bytes_equal(bytes_of(identity), bytes)) {
            break;
        }
        at = (at + 1) & mask;
    }
    return at;
}

static bool grow_slots(struct aster_identities *set)
{
    if (set->slot_count != 0 && set->count < set->slot_count / 2) {
        return true;
    }
    uint32_t slot_count = set->slot_count == 0 ? 8 : set->slot_count * 2;
    uint32_t *slots = aster_alloc(slot_count * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    memset(slots, 0, slot_count * sizeof *slots);
    uint32_t *old = set->slots;
    uint32_t old_count = set->slot_count;
    set->slots = slots;
    set->slot_count = slot_count;
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i] != 0) {
            const struct aster_identity *identity = set->by_id[old[i]];
            slots[find_slot(set, identity->hash, bytes_of(identity))] = old[i];
        }
    }
    set->bytes += (slot_count - old_count) * sizeof *slots;
    free(old);
    return true;
}

static bool grow_ids(struct aster_identities *set)
{
    if (set->free_id != 0 || set->next_id < set->capacity) {
        return true;
    }
    uint32_t capacity = set->capacity == 0 ? 8 : set->capacity * 2;
    struct aster_identity **by_id = aster_realloc(set->by_id, capacity * sizeof(struct aster_identity *));
    if (by_id == NULL) {
        return false;
    }
    set->bytes += (capacity - set->capacity) * sizeof(struct aster_identity *);
    set->by_id = by_id;
    set->capacity = capacity;
    return true;
}

static uint32_t next_free_id(struct aster_identities *set)
{
    if (set->free_id == 0) {
        return set->next_id++;
    }
    uint32_t id = set->free_id;
    struct aster_identity *returned = set->by_id[id];
    set->free_id = returned->hash;
    set->bytes -= sizeof *returned;
    free(returned);
    return id;
}

bool aster_identities_take(struct aster_identities *set, struct aster_bytes bytes, uint32_t *id)
{
    if (bytes.size == 0) {
        *id = 0;
        return true;
    }
    uint32_t hash = (uint32_t)aster_siphash(&set->key, bytes);
    if (set->slot_count != 0) {
        uint32_t found = set->slots[find_slot(set, hash, bytes)];
        if (found != 0) {
            set->by_id[found]->references++;
            *id = found;
            return true;
        }
    }
    if (!grow_slots(set) || !grow_ids(set)) {
        return false;
    }
    struct aster_identity *identity = aster_alloc(sizeof *identity + bytes.size);
    if (identity == NULL) {
        return false;
    }
    identity->references = 1;
    identity->hash = hash;
    identity->size = (uint32_t)bytes.size;
    memcpy(identity->bytes, bytes.data, bytes.size);
    uint32_t fresh = next_free_id(set);
    set->by_id[fresh] = identity;
    set->slots[find_slot(set, hash, bytes)] = fresh;
    set->count++;
    set->bytes += sizeof *identity + bytes.size;
    *id = fresh;
    return true;
}

void aster_identities_share(struct aster_identities *set, uint32_t id)
{
    if (id != 0) {
        set->by_id[id]->references++;
    }
}

/* Close the gap at `at`, so that probing needs no tombstones. */
static void remove_slot(struct aster_identities *set, uint32_t at)
{
    uint32_t mask = set->slot_count - 1;
    uint32_t next = at;
    for (;;) {
        next = (next + 1) & mask;
        if (set->slots[next] == 0) {
            break;
        }
        uint32_t home = set->by_id[set->slots[next]]->hash & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            set->slots[at] = set->slots[next];
            at = next;
        }
    }
    set->slots[at] = 0;
}

void aster_identities_drop(struct aster_identities *set, uint32_t id)
{
    if (id == 0 || --set->by_id[id]->references > 0) {
        return;
    }
    struct aster_identity *identity = set->by_id[id];
    remove_slot(set, find_slot(set, identity->hash, bytes_of(identity)));
    /* The header stays as a link of the chain of returned ids: returning must not need memory. */
    set->bytes -= identity->size;
    identity->size = 0;
    identity->hash = set->free_id;
    set->free_id = id;
    set->count--;
}

struct aster_bytes aster_identities_bytes(const struct aster_identities *set, uint32_t id)
{
    return id == 0 ? (struct aster_bytes){NULL, 0} : bytes_of(set->by_id[id]);
}

uint32_t aster_identities_references(const struct aster_identities *set, uint32_t id)
{
    return id == 0 || id >= set->next_id ? 0 : set->by_id[id]->references;
}
