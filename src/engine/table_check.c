/* Whole-table looks: the invariants, and a hash of the durable state. */
#include <stdlib.h>

#include "engine/codec.h"
#include "engine/table_internal.h"

struct checking {
    const struct aster_table *table;
    const char *broken;
    size_t rows;
    size_t held;
    size_t references; /* of identities, counted from the rows */
    size_t in_heap;
};

static const char *check_deadline(const struct aster_table *table, const struct aster_entry *entry)
{
    if (entry->deadline_slot == 0) {
        return NULL; /* free, or given as expired already */
    }
    if (entry->deadline_slot > table->deadlines.count) {
        return "a row's slot is outside the heap of deadlines";
    }
    const struct aster_deadline *deadline = &table->deadlines.heap[entry->deadline_slot - 1];
    if (deadline->entry != entry) {
        return "a row's slot in the heap of deadlines is another row's";
    }
    if (deadline->at_ns > aster_entry_deadline_ns(entry)) {
        return "a row would surface after its deadline";
    }
    return NULL;
}

static bool check_entry(struct aster_entry *entry, void *user)
{
    struct checking *checking = user;
    const struct aster_table *table = checking->table;
    const uint32_t ids[] = {entry->holder, entry->last_holder, entry->applied_caller};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (ids[i] != 0 && aster_identities_references(&table->identities, ids[i]) == 0) {
            checking->broken = "a row names an identity that is not interned";
            return false;
        }
        checking->references += ids[i] != 0;
    }
    struct aster_row row = aster_entry_row(table, entry);
    checking->broken = aster_row_check(aster_entry_name(entry), &row);
    if (checking->broken == NULL) {
        checking->broken = check_deadline(table, entry);
    }
    if (checking->broken == NULL && entry->hash != (uint32_t)aster_siphash(&table->key, aster_entry_name(entry))) {
        checking->broken = "a row's hash is not that of its name";
    }
    if (checking->broken == NULL && aster_index_find(&table->index, entry->hash, aster_entry_name(entry)) != entry) {
        checking->broken = "a row is not found under its name";
    }
    checking->rows++;
    checking->held += entry->held;
    checking->in_heap += entry->deadline_slot != 0;
    return checking->broken == NULL;
}

static const char *check_heap(const struct aster_deadlines *deadlines)
{
    for (uint32_t at = 1; at < deadlines->count; at++) {
        if (deadlines->heap[(at - 1) / 2].at_ns > deadlines->heap[at].at_ns) {
            return "the heap of deadlines is out of order";
        }
    }
    return NULL;
}

const char *aster_table_check(const struct aster_table *table)
{
    struct checking checking = {.table = table};
    aster_index_visit(&table->index, check_entry, &checking);
    if (checking.broken != NULL) {
        return checking.broken;
    }
    size_t references = 0;
    for (uint32_t id = 1; id < table->identities.next_id; id++) {
        references += aster_identities_references(&table->identities, id);
    }
    if (checking.rows != table->index.count || checking.held != table->held) {
        return "the counts of rows or held rows are off";
    }
    if (checking.references + table->image_references != references) {
        return "the references of the interned identities are off";
    }
    if (checking.in_heap != table->deadlines.count) {
        return "the heap of deadlines holds rows that are gone";
    }
    if (table->floor < 0) {
        return "the floor is negative";
    }
    return check_heap(&table->deadlines);
}

struct hashing {
    const struct aster_table *table;
    uint64_t sum;
};

static bool hash_entry(struct aster_entry *entry, void *user)
{
    struct hashing *hashing = user;
    struct aster_row row = aster_entry_row(hashing->table, entry);
    hashing->sum += aster_row_checksum(aster_entry_name(entry), &row);
    return true;
}

uint64_t aster_table_state_hash(const struct aster_table *table)
{
    struct hashing hashing = {table, (uint64_t)table->floor * UINT64_C(0x9e3779b97f4a7c15)};
    aster_index_visit(&table->index, hash_entry, &hashing);
    return hashing.sum;
}
