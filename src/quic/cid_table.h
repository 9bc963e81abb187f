/* From a connection id to its connection. Keyed hash: peers choose the first id of a connection. One thread. */
#ifndef QUIC_CID_TABLE_H
#define QUIC_CID_TABLE_H

#include <ngtcp2/ngtcp2.h>

#include "aster/status.h"
#include "engine/siphash.h"

struct aster_connection;

struct aster_cid_entry {
    struct aster_cid_entry *next_in_bucket;
    struct aster_cid_entry *next_of_connection;
    struct aster_connection *connection;
    uint64_t hash;
    ngtcp2_cid cid;
};

struct aster_cid_table {
    struct aster_hash_key key;
    struct aster_cid_entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t count;
};

/* Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (no random key). */
aster_status aster_cid_table_init(struct aster_cid_table *table, struct aster_error *error);
void aster_cid_table_fini(struct aster_cid_table *table); /* must be empty */

/* NULL when there is none. */
struct aster_connection *aster_cid_table_find(const struct aster_cid_table *table, const uint8_t *data, size_t size);
/* The entry goes to the front of *list. Errors: ASTER_ERR_NOMEM. */
aster_status aster_cid_table_add(struct aster_cid_table *table, const ngtcp2_cid *cid,
                                 struct aster_connection *connection, struct aster_cid_entry **list);
/* Remove one id of *list; an unknown one is ignored. */
void aster_cid_table_remove(struct aster_cid_table *table, const ngtcp2_cid *cid, struct aster_cid_entry **list);
/* Remove every id of *list. */
void aster_cid_table_clear(struct aster_cid_table *table, struct aster_cid_entry **list);

#endif
