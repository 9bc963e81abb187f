#include "base/error.h"
#include "serializer/sqlite/audit.h"
#include "serializer/sqlite/store.h"

static aster_status begin(struct aster_store *store, struct aster_error *error)
{
    struct aster_connection *connection = &store->read_connection;
    if (connection->db == NULL) {
        aster_status status = aster_store_connect(store, connection, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    aster_connection_wait_for(connection, store->options.busy_timeout_ms);
    return aster_connection_begin_read(connection, error);
}

struct listing {
    const struct aster_clock *clock;
    aster_visit_row visit;
    void *user;
};

static bool visit_stored(struct aster_bytes resource, const struct aster_stored_row *stored, void *user)
{
    const struct listing *listing = user;
    struct aster_snapshot snapshot;
    aster_stored_row_snapshot(resource, stored, aster_clock_now_ns(listing->clock), &snapshot);
    return listing->visit(&snapshot, listing->user);
}

aster_status aster_store_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                              struct aster_error *error)
{
    struct aster_store *store = self;
    struct listing listing = {store->clock, visit, user};
    pthread_mutex_lock(&store->read_mutex);
    aster_status status = begin(store, error);
    if (status == ASTER_OK) {
        const struct aster_row_reader reader = {&store->read_connection, &store->read_arena, store->clock,
                                                &store->boot};
        status = aster_row_list(&reader, query, visit_stored, &listing, error);
        aster_connection_rollback(&store->read_connection);
    }
    pthread_mutex_unlock(&store->read_mutex);
    return status;
}

aster_status aster_store_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                 void *user, struct aster_error *error)
{
    struct aster_store *store = self;
    pthread_mutex_lock(&store->read_mutex);
    aster_status status = begin(store, error);
    if (status == ASTER_OK) {
        status = aster_audit_read(&store->read_connection, query, store->options.history_max, visit, user, error);
        aster_connection_rollback(&store->read_connection);
    }
    pthread_mutex_unlock(&store->read_mutex);
    return status;
}
