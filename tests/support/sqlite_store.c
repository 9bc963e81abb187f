#include "support/sqlite_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

void sqlite_store_init(struct sqlite_store *store)
{
    *store = (struct sqlite_store){.options = ASTER_SQLITE_OPTIONS_INIT};
    snprintf(store->directory, sizeof store->directory, "/tmp/aster-test-XXXXXX");
    assert_non_null(mkdtemp(store->directory));
    snprintf(store->path, sizeof store->path, "%s/store.db", store->directory);
    store->clock = fake_clock_create();
    store->options.clock = fake_clock_clock(store->clock);
    sqlite_store_open(store);
}

void sqlite_store_open(struct sqlite_store *store)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_sqlite_open(store->path, &store->options, &store->serializer, &error);
    if (status != ASTER_OK) {
        fail_msg("cannot open the store: %s", error.message);
    }
}

void sqlite_store_close(struct sqlite_store *store)
{
    aster_serializer_destroy(store->serializer);
    store->serializer = NULL;
}

void sqlite_store_fini(struct sqlite_store *store)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    sqlite_store_close(store);
    fake_clock_destroy(store->clock);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", store->path, suffixes[i]);
        unlink(path);
    }
    rmdir(store->directory);
}

sqlite3 *sqlite_store_connect(const struct sqlite_store *store)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(store->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

void sqlite_store_execute(const struct sqlite_store *store, const char *sql)
{
    sqlite3 *db = sqlite_store_connect(store);
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    sqlite3_close(db);
}

int64_t sqlite_store_ask(const struct sqlite_store *store, const char *sql)
{
    sqlite3 *db = sqlite_store_connect(store);
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

aster_status store_call_run(struct store_call *call, const struct aster_operation *operation)
{
    return aster_serializer_call(call->serializer, operation, 0, &call->reply, &call->error);
}

aster_status store_acquire(struct store_call *call, const char *resource, const char *candidate, int64_t ttl_ms)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text(resource);
    operation.caller = aster_text(candidate);
    operation.ttl_ms = ttl_ms;
    return store_call_run(call, &operation);
}

static aster_status with_epoch(struct store_call *call, enum aster_operation_kind kind, const char *resource,
                               const char *holder, int64_t epoch)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text(holder);
    operation.epoch = epoch;
    return store_call_run(call, &operation);
}

aster_status store_renew(struct store_call *call, const char *resource, const char *holder, int64_t epoch)
{
    return with_epoch(call, ASTER_OP_RENEW, resource, holder, epoch);
}

aster_status store_release(struct store_call *call, const char *resource, const char *holder, int64_t epoch)
{
    return with_epoch(call, ASTER_OP_RELEASE, resource, holder, epoch);
}

aster_status store_inspect(struct store_call *call, const char *resource)
{
    return aster_inspect(call->serializer, aster_text(resource), &call->reply, &call->error);
}

void store_call_fini(struct store_call *call)
{
    aster_reply_fini(&call->reply);
}
