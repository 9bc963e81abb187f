/* One open store: what the worker, fenced writes and readers share. */
#ifndef SQLITE_STORE_H
#define SQLITE_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "aster/sqlite.h"
#include "aster/sys/serializer.h"
#include "platform/host.h"
#include "serializer/sqlite/connection.h"
#include "serializer/sqlite/rows.h"
#include "serializer/sqlite/turns.h"

struct aster_worker;
struct aster_guard;
struct aster_opened;

struct aster_store {
    struct aster_sqlite_options options; /* complete and checked */
    const struct aster_clock *clock;
    char *path;
    struct aster_boot boot;
    uint64_t fork_generation;
    struct aster_opened *opened; /* the file is noted as open in this process */
    bool needs_rescue;           /* belongs to whoever has the turn */

    struct aster_turns turns;    /* who of this process writes */
    struct aster_worker *worker; /* decides requests, on its own connection */

    struct aster_connection mutate_connection; /* of fenced writes; with their turn; opened by the first one */
    struct aster_guard *guard;                 /* owned by mutate_connection */
    struct aster_arena mutate_arena;
    bool in_mutation; /* for the authorizer and the commit hook */

    pthread_mutex_t read_mutex; /* list and history */
    struct aster_connection read_connection;
    struct aster_arena read_arena;
};

/* Open another connection to the store's file; needs_rescue is only touched by those that write. */
aster_status aster_store_connect(struct aster_store *store, struct aster_connection *connection,
                                 struct aster_error *error);

/* Slots of the vtable; see aster/sys/serializer.h. */
aster_status aster_store_mutate(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                struct aster_error *error);
aster_status aster_store_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                              struct aster_error *error);
aster_status aster_store_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                 void *user, struct aster_error *error);

#endif
