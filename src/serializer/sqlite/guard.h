/* The guard of protected tables: which fences a connection has declared, and the SQL functions around them. Compiled
 * twice: into libaster-sqlite, and into the extension aster.so against the API table of the program that loads it. */
#ifndef SQLITE_GUARD_H
#define SQLITE_GUARD_H

#ifdef ASTER_SQLITE_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT3
#else
#include <sqlite3.h>
#endif

#include "aster/fence.h"

/* The function that triggers call. A program without it fails with "no such function: ...", so the name says what to
 * do next. */
#define ASTER_GUARD_FUNCTION "aster_guard__load_aster_extension"

struct aster_guard; /* the declarations of one connection */

/* Register the functions on `db`, which owns the guard from now on and frees it when it is closed. `guard` (may be
 * NULL) gives access to it. Returns an SQLite result code. Thread-safety of all: the connection's. */
int aster_guard_install(sqlite3 *db, struct aster_guard **guard);

/* Declare `fence` for its resource, replacing an earlier one; the names are copied. SQLITE_OK or SQLITE_NOMEM. */
int aster_guard_declare(struct aster_guard *guard, const struct aster_fence *fence);

/* Take the declaration for `resource` back, if there is one. */
void aster_guard_withdraw(struct aster_guard *guard, struct aster_bytes resource);
void aster_guard_withdraw_all(struct aster_guard *guard);

#endif
