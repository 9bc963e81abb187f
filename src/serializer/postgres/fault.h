/* What an error of PostgreSQL's means to a caller of Aster. */
#ifndef POSTGRES_FAULT_H
#define POSTGRES_FAULT_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "aster/status.h"

/* Fill in `error` (optional) from a failed result and return the status, which is never ASTER_OK. The statement was
 * rolled back: nothing was applied. */
aster_status aster_pg_fault(const PGresult *result, struct aster_error *error);

/* The same for a connection that failed, with libpq's message: ASTER_ERR_UNREACHABLE. */
aster_status aster_pg_fault_lost(const char *message, struct aster_error *error);

/* Is it worth another try at once: a serialization failure or a deadlock? */
bool aster_pg_fault_is_conflict(const PGresult *result);

/* Did it wait for a row lock for longer than lock_timeout? */
bool aster_pg_fault_is_lock(const PGresult *result);

/* Does the server that sent it end the connection, or can it not write: is it time to connect again? */
bool aster_pg_fault_is_session(const PGresult *result);

#endif
