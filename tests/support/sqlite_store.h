/* A SQLite store in a directory of its own, for tests: opened over the fake clock, driven in one line per operation. */
#ifndef SUPPORT_SQLITE_STORE_H
#define SUPPORT_SQLITE_STORE_H

#include "aster/sqlite.h"
#include "support/fake_clock.h"

struct sqlite_store {
    char directory[64];
    char path[96];
    struct fake_clock *clock;
    struct aster_sqlite_options options; /* in force at the next open */
    struct aster_serializer *serializer; /* NULL = closed */
};

/* A fresh directory and an open store; cmocka assertions on failure. */
void sqlite_store_init(struct sqlite_store *store);
void sqlite_store_fini(struct sqlite_store *store); /* removes the directory */

void sqlite_store_open(struct sqlite_store *store);
void sqlite_store_close(struct sqlite_store *store);

/* Another connection to the file, as a foreign program has it; the caller closes it. */
sqlite3 *sqlite_store_connect(const struct sqlite_store *store);

/* Run SQL on a connection of its own; asserts that it works. */
void sqlite_store_execute(const struct sqlite_store *store, const char *sql);

/* The first column of the first row, as an integer. */
int64_t sqlite_store_ask(const struct sqlite_store *store, const char *sql);

/* Operations with text names. Each returns the status; the decision stays in `reply` until the next one. */
struct store_call {
    struct aster_serializer *serializer;
    struct aster_reply reply;
    struct aster_error error;
};

aster_status store_acquire(struct store_call *call, const char *resource, const char *candidate, int64_t ttl_ms);
aster_status store_renew(struct store_call *call, const char *resource, const char *holder, int64_t epoch);
aster_status store_release(struct store_call *call, const char *resource, const char *holder, int64_t epoch);
aster_status store_inspect(struct store_call *call, const char *resource);
aster_status store_call_run(struct store_call *call, const struct aster_operation *operation);
void store_call_fini(struct store_call *call);

#endif
