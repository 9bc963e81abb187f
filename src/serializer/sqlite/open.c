#include <stdlib.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "base/options.h"
#include "platform/files.h"
#include "platform/fork.h"
#include "serializer/sqlite/boot.h"
#include "serializer/sqlite/file.h"
#include "serializer/sqlite/inherited.h"
#include "serializer/sqlite/statements.h"
#include "serializer/sqlite/store.h"
#include "serializer/sqlite/worker.h"

/* That the caller is the process that opened the store, and not inside one of its mutations, is checked once for every
 * kind of serializer: src/serializer/serializer.c. */
static void submit(void *self, struct aster_request *request)
{
    const struct aster_store *store = self;
    aster_worker_submit(store->worker, request);
}

static void cancel(void *self, struct aster_request *request)
{
    const struct aster_store *store = self;
    aster_worker_cancel(store->worker, request);
}

static void close_store(void *self)
{
    const struct aster_store *store = self;
    aster_worker_close(store->worker);
}

static aster_status wait_answered(void *self, int64_t timeout_ms)
{
    const struct aster_store *store = self;
    return aster_worker_wait(store->worker, timeout_ms);
}

static void free_store(struct aster_store *store)
{
    aster_worker_destroy(store->worker);
    aster_connection_fini(&store->mutate_connection);
    aster_connection_fini(&store->read_connection);
    aster_arena_fini(&store->mutate_arena);
    aster_arena_fini(&store->read_arena);
    aster_opened_forget(store->opened);
    aster_turns_fini(&store->turns);
    pthread_mutex_destroy(&store->read_mutex);
    free(store->path);
    free(store);
}

static void destroy(void *self)
{
    free_store(self);
}

static const struct aster_serializer_ops ops = {
    .struct_size = sizeof ops,
    .name = "sqlite",
    .traits = 0,
    .submit = submit,
    .cancel = cancel,
    .close = close_store,
    .wait = wait_answered,
    .destroy = destroy,
    .mutate_fenced = aster_store_mutate,
    .list_page = aster_store_list,
    .history = aster_store_history,
};

static aster_status check_range(const char *option, int64_t value, int64_t least, int64_t most,
                                struct aster_error *error)
{
    if (value < least || value > most) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %lld: it must be %lld to %lld", option,
                               (long long)value, (long long)least, (long long)most);
    }
    return ASTER_OK;
}

static aster_status read_options(const struct aster_sqlite_options *given, struct aster_sqlite_options *options,
                                 struct aster_error *error)
{
    struct aster_sqlite_options made = ASTER_SQLITE_OPTIONS_INIT;
    aster_status status = aster_options_read(&made, given, "ASTER_SQLITE_OPTIONS_INIT", error);
    const struct {
        const char *name;
        int64_t value;
        int64_t least;
        int64_t most;
    } ranges[] = {
        {"busy_timeout_ms", made.busy_timeout_ms, 0, 60000},
        {"history_max", made.history_max, 0, INT64_C(1) << 40},
        {"queue_max", (int64_t)made.queue_max, 1, INT32_MAX},
        {"batch_max", (int64_t)made.batch_max, 1, 65536},
        {"limits.ttl_min_ms", made.limits.ttl_min_ms, 1, ASTER_TTL_HARD_MAX_MS},
        {"limits.ttl_max_ms", made.limits.ttl_max_ms, made.limits.ttl_min_ms, ASTER_TTL_HARD_MAX_MS},
        {"limits.value_max_bytes", (int64_t)made.limits.value_max_bytes, 0, ASTER_VALUE_MAX},
    };
    for (size_t i = 0; status == ASTER_OK && i < sizeof ranges / sizeof ranges[0]; i++) {
        status = check_range(ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most, error);
    }
    if (status == ASTER_OK) {
        *options = made;
    }
    return status;
}

static aster_status prepare_file(const struct aster_store *store, struct aster_error *error)
{
    const struct aster_database_file file = {
        .path = store->path,
        .create = store->options.create,
        .allow_network_filesystem = store->options.allow_network_filesystem,
        .network_advice = "use a local disk (or set allow_network_filesystem if only this machine uses it)"};
    return aster_database_file_prepare(&file, error);
}

static aster_status note_opened(struct aster_store *store, struct aster_error *error)
{
    struct aster_file_identity file;
    aster_status status = aster_file_identify(store->path, &file, error);
    return status == ASTER_OK ? aster_opened_note(&file, store->fork_generation, &store->opened, error) : status;
}

static aster_status open_store(struct aster_store *store, const char *path, const struct aster_sqlite_options *options,
                               struct aster_error *error)
{
    aster_status status = read_options(options, &store->options, error);
    if (status != ASTER_OK) {
        return status;
    }
    store->clock = store->options.clock != NULL ? store->options.clock : aster_clock_system();
    store->fork_generation = aster_fork_generation(error);
    if (store->fork_generation == 0) {
        return ASTER_ERR_IO;
    }
    status = aster_database_path(path, "store", &store->path, error);
    if (status == ASTER_OK) {
        status = aster_boot_read(store->clock, &store->boot, error);
    }
    if (status == ASTER_OK) {
        status = prepare_file(store, error);
    }
    if (status == ASTER_OK) {
        status = note_opened(store, error);
    }
    if (status == ASTER_OK) {
        status = aster_worker_create(store, &store->worker, error);
    }
    return status;
}

static aster_status refuse_journal(struct aster_connection *connection, struct aster_error *error)
{
    int64_t application = 0;
    aster_status status = aster_connection_ask(connection, "PRAGMA application_id", &application, error);
    if (status == ASTER_OK && application == ASTER_JOURNAL_APPLICATION_ID) {
        char path[ASTER_PRINTABLE_MAX];
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "%s is the journal of a grantor and no store: serve it with asterd and name "
                                 "aster://HOST:PORT, or name another file",
                                 aster_printable(aster_text(connection->path), path));
    }
    return status;
}

aster_status aster_store_connect(struct aster_store *store, struct aster_connection *connection,
                                 struct aster_error *error)
{
    const struct aster_connection_setup setup = {.path = store->path,
                                                 .busy_timeout_ms = store->options.busy_timeout_ms,
                                                 .needs_rescue = &store->needs_rescue,
                                                 .texts = aster_store_statement_texts,
                                                 .accept = refuse_journal};
    return aster_connection_open(connection, &setup, error);
}

aster_status aster_sqlite_open(const char *path, const struct aster_sqlite_options *options,
                               struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
    }
    aster_turns_init(&store->turns);
    pthread_mutex_init(&store->read_mutex, NULL);
    aster_status status = open_store(store, path, options, error);
    if (status == ASTER_OK) {
        status = aster_serializer_create(&ops, store, store->clock, serializer, error);
    }
    if (status != ASTER_OK) {
        free_store(store);
    }
    return status;
}
