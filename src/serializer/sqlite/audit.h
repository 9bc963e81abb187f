/* Rows of aster_audit: the bounded history. All calls belong inside the caller's transaction. */
#ifndef SQLITE_AUDIT_H
#define SQLITE_AUDIT_H

#include "aster/serializer.h"
#include "serializer/sqlite/connection.h"

/* Append `event` (its revision is chosen here), and now and then delete what is older than the newest `history_max`.
 * history_max 0 writes nothing. */
aster_status aster_audit_append(struct aster_connection *connection, const struct aster_event *event,
                                int64_t history_max, struct aster_error *error);

/* Visit what `query` asks for among the newest `history_max` events, oldest first. */
aster_status aster_audit_read(struct aster_connection *connection, const struct aster_history_query *query,
                              int64_t history_max, aster_visit_event visit, void *user, struct aster_error *error);

#endif
