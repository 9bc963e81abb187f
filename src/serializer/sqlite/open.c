#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "base/options.h"
#include "platform/files.h"
#include "platform/fork.h"
#include "serializer/sqlite/boot.h"
#include "serializer/sqlite/filesystem.h"
#include "serializer/sqlite/inherited.h"
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

/* A path that SQLite takes for the name of a file, whatever it looks like. */
static aster_status copy_path(const char *path, char **copy, struct aster_error *error)
{
    if (path == NULL || path[0] == '\0') {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path of the store is empty: name a file");
    }
    if (strcmp(path, ":memory:") == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "\":memory:\" is no file: use aster_memory_open() for leases within one process");
    }
    size_t size = strlen(path) + sizeof "./";
    char *made = malloc(size);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a path");
    }
    snprintf(made, size, "%s%s", path[0] == '/' ? "" : "./", path);
    *copy = made;
    return ASTER_OK;
}

static aster_status prepare_file(const struct aster_store *store, struct aster_error *error)
{
    /* Closing a descriptor of a database drops all locks that this process has on it: nobody else of this process may
     * open the file between its creation and the close. */
    static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;
    bool created = false;
    aster_status status = ASTER_OK;
    if (store->options.create) {
        pthread_mutex_lock(&creating);
        status = aster_file_create_private(store->path, &created, error);
        pthread_mutex_unlock(&creating);
    }
    if (status == ASTER_OK) {
        status = aster_file_check_regular(store->path, error);
    }
    if (status == ASTER_OK && !store->options.allow_network_filesystem) {
        status = aster_filesystem_check(store->path, error);
    }
    if (status != ASTER_OK && created) {
        unlink(store->path);
    }
    return status;
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
    status = copy_path(path, &store->path, error);
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
