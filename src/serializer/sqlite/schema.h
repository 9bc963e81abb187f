/* The tables of the store: created, checked and armed when a file is opened. */
#ifndef SQLITE_SCHEMA_H
#define SQLITE_SCHEMA_H

#include "aster/sys/clock.h"
#include "serializer/sqlite/boot.h"
#include "serializer/sqlite/connection.h"

#define ASTER_SCHEMA_VERSION 1

extern const char aster_schema_text[]; /* sql/sqlite/schema.sql */

/* Create the tables if they are missing, in one transaction, and check their version. Errors: ASTER_ERR_VERSION,
 * ASTER_ERR_CORRUPT (no usable aster_meta), ASTER_ERR_BUSY, ASTER_ERR_IO. */
aster_status aster_schema_prepare(struct aster_connection *connection, struct aster_error *error);

/* When the rows were armed in another boot than `boot`: give every held row a full ttl from now. No epoch moves. */
aster_status aster_schema_arm(struct aster_connection *connection, const struct aster_clock *clock,
                              const struct aster_boot *boot, struct aster_error *error);

#endif
