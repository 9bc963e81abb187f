/* Rows by resource name, with deadlines and the floor: the state of one serializer (or of one stripe of it).
 *
 * Pure: no clock (time is an argument), no lock (the caller serialises), no hidden failure: memory is asked for before
 * anything changes, and ASTER_ERR_NOMEM leaves the table as it was. Deterministic: the same calls give the same state.
 */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "aster/transition.h"
#include "engine/siphash.h"

/* Gets one row and since when it is held; returns false to stop. */
typedef bool (*aster_table_visitor)(const struct aster_snapshot *snapshot, int64_t since_ns, void *user);

struct aster_table;

struct aster_table_options {
    struct aster_hash_key key; /* random, so that clients cannot choose colliding names; any value in simulations */
    struct aster_limits limits;
    bool without_deadlines; /* nobody asks for the next deadline or the next expired row: they are not kept, which saves
                               20 bytes a row. Expiry is judged all the same when a row is asked about */
};

aster_status aster_table_create(const struct aster_table_options *options, struct aster_table **table,
                                struct aster_error *error);
void aster_table_destroy(struct aster_table *table); /* NULL is legal */

/* An effect, and since when the row's current lease is held: `now_ns` of its acquire, or ASTER_TABLE_SINCE_UNKNOWN
 * (free, or acquired before a restart). Callers turn it into the snapshot's since_unix_ms with their wall clock. */
#define ASTER_TABLE_SINCE_UNKNOWN INT64_MIN
struct aster_table_result {
    struct aster_effect effect;
    int64_t since_ns;
};

/* Judge expiry at `now_ns`, decide `operation` and store what changed. The decision's remaining_ns is filled in. The
 * views in *result borrow the table, until its next call, and the operation's resource.
 * Errors: those of aster_operation_check() (with this table's limits) and aster_transition(); ASTER_ERR_LIMIT
 * (resources_max); ASTER_ERR_NOMEM. */
aster_status aster_table_apply(struct aster_table *table, const struct aster_operation *operation, int64_t now_ns,
                               struct aster_table_result *result, struct aster_error *error);

/* What a row was before a change, so that the change can be taken back without a chance of failure. */
struct aster_table_image {
    struct aster_entry *entry; /* private from here on; NULL: there was no row */
    struct aster_value *value;
    enum aster_table_image_kind {
        ASTER_IMAGE_NONE,
        ASTER_IMAGE_CREATED,
        ASTER_IMAGE_CHANGED,
        ASTER_IMAGE_REMOVED
    } kind;
    bool value_replaced;
};

/* As aster_table_apply(), and *image is what the row was if it changed by anything but a renewal; else its kind is
 * ASTER_IMAGE_NONE. End it by one of the two below, before the table is destroyed. */
aster_status aster_table_apply_imaged(struct aster_table *table, const struct aster_operation *operation,
                                      int64_t now_ns, struct aster_table_result *result,
                                      struct aster_table_image *image, struct aster_error *error);
/* Make the row what it was, time of its grant included, as if neither the change nor a renewal after it had happened.
 * Images of one row are restored newest first. The floor stays. Allocates nothing. */
void aster_table_restore(struct aster_table *table, struct aster_bytes resource, struct aster_table_image *image);
/* The change stands. */
void aster_table_image_drop(struct aster_table *table, struct aster_table_image *image);

/* The fence rule for fence->resource. Allocates nothing. */
struct aster_verdict aster_table_fence(const struct aster_table *table, const struct aster_fence *fence,
                                       struct aster_bytes writer);
/* The same for a caller that has computed aster_siphash(key, fence->resource) already, with this table's key. */
struct aster_verdict aster_table_fence_hashed(const struct aster_table *table, uint64_t hash,
                                              const struct aster_fence *fence, struct aster_bytes writer);

/* Is there a row, held or free? */
bool aster_table_has(const struct aster_table *table, struct aster_bytes resource);

/* No held row expires before this instant (it may be early: renewals do not move it); INT64_MAX when none is held, or
 * without_deadlines. */
int64_t aster_table_next_deadline(const struct aster_table *table);

/* The identity of an expired lease: what an EXPIRE operation or an EXPIRED_VERDICT names. */
struct aster_expired_lease {
    struct aster_bytes resource; /* borrowed from the table until its next call */
    int64_t epoch;
    int64_t lease_revision;
};

/* Give one held row that is expired at `now_ns` and has not been given since it was last armed; false when there is
 * none, or without_deadlines. The row is not changed: the caller decides what to do with it. Amortised O(log n). */
bool aster_table_next_expired(struct aster_table *table, int64_t now_ns, struct aster_expired_lease *lease);

/* Is the row held, and when does it expire? INT64_MAX when it is free or absent. */
int64_t aster_table_deadline(const struct aster_table *table, struct aster_bytes resource);

/* After a restart: every held row gets a full ttl from now; no epoch advances. Returns how many were re-armed. */
size_t aster_table_restart(struct aster_table *table, int64_t now_ns);

/* Put a durable row back (load of a journal or checkpoint), replacing any; held rows are armed at now_ns.
 * Errors: ASTER_ERR_CORRUPT (a row that breaks an invariant), ASTER_ERR_NOMEM. */
aster_status aster_table_load(struct aster_table *table, struct aster_bytes resource, const struct aster_row *row,
                              int64_t now_ns, struct aster_error *error);

/* The epoch of rows that do not exist: the greatest epoch ever forgotten. Raising never lowers. */
int64_t aster_table_floor(const struct aster_table *table);
void aster_table_raise_floor(struct aster_table *table, int64_t floor);
/* Set it back, together with the restored images of every row that raised it since. */
void aster_table_reset_floor(struct aster_table *table, int64_t floor);

/* Rows, held rows, and bytes allocated for them (without the allocator's own overhead). */
struct aster_table_usage {
    size_t rows;
    size_t held;
    size_t bytes;
};
struct aster_table_usage aster_table_usage_get(const struct aster_table *table);

/* Visit every row in no particular order, `remaining` judged at now_ns. The visitor must not change the table; false
 * stops. */
void aster_table_visit(const struct aster_table *table, int64_t now_ns, aster_table_visitor visit, void *user);
/* A hash of the whole durable state, independent of insertion order: equal histories give equal hashes. */
uint64_t aster_table_state_hash(const struct aster_table *table);

/* Check every invariant (counts, chains, deadlines, interned identities, epochs >= 0, held <-> holder, floor). Returns
 * NULL, or a static text naming the first one that is broken. For tests; O(n). */
const char *aster_table_check(const struct aster_table *table);

#endif
