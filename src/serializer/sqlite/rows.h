/* Rows of aster_lease and the one of aster_meta, as structs. All calls belong inside the caller's transaction. */
#ifndef SQLITE_ROWS_H
#define SQLITE_ROWS_H

#include "aster/serializer.h"
#include "aster/sys/clock.h"
#include "aster/transition.h"
#include "serializer/sqlite/arena.h"
#include "serializer/sqlite/boot.h"
#include "serializer/sqlite/connection.h"

struct aster_meta {
    int64_t schema_version;
    int64_t floor;
    int64_t resources;
    char boot_id[ASTER_BOOT_ID_SIZE];
};

aster_status aster_meta_load(struct aster_connection *connection, struct aster_meta *meta, struct aster_error *error);
aster_status aster_meta_store(struct aster_connection *connection, const struct aster_meta *meta,
                              struct aster_error *error);

struct aster_stored_row {
    struct aster_row row;
    bool exists;
    bool rearmed;          /* granted in another boot: a full ttl from the load on, still to be written */
    int64_t granted_at_ns; /* on this process's clock, in this boot */
    int64_t since_unix_ms;
};

/* What a load needs to know beside the name. */
struct aster_row_reader {
    struct aster_connection *connection;
    struct aster_arena *arena; /* where the row's bytes are copied to */
    const struct aster_clock *clock;
    const struct aster_boot *boot;
};

/* Load and verify one row; an absent one has the floor as its epoch. Errors: ASTER_ERR_CORRUPT (the content does not
 * match its checksum or breaks a rule), ASTER_ERR_NOMEM, the connection's. */
aster_status aster_row_load(const struct aster_row_reader *reader, struct aster_bytes resource,
                            struct aster_stored_row *stored, struct aster_error *error);

/* Visit the rows of the query, in byte order, until `visit` returns false. */
typedef bool (*aster_stored_row_visit)(struct aster_bytes resource, const struct aster_stored_row *stored, void *user);
aster_status aster_row_list(const struct aster_row_reader *reader, const struct aster_list_query *query,
                            aster_stored_row_visit visit, void *user, struct aster_error *error);

/* Insert the row, or update it when `update`. */
aster_status aster_row_store(struct aster_connection *connection, struct aster_bytes resource,
                             const struct aster_stored_row *stored, const struct aster_boot *boot, bool update,
                             struct aster_error *error);
aster_status aster_row_delete(struct aster_connection *connection, struct aster_bytes resource,
                              struct aster_error *error);

bool aster_stored_row_expired(const struct aster_stored_row *stored, int64_t now_ns);

/* Fill the whole snapshot; its views are the row's. */
void aster_stored_row_snapshot(struct aster_bytes resource, const struct aster_stored_row *stored, int64_t now_ns,
                               struct aster_snapshot *snapshot);

#endif
