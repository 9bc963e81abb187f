/* What the guard costs a transaction that updates one row of a SQLite table, its statements prepared, beside the same
 * transaction on a table without a guard, in turns; both are synced at the commit. Usage: bench_guard [DIRECTORY] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "physical.h"

#define ROUNDS 21
#define UPDATES 100 /* a round and kind */
#define BOUND 1.2

static const char *const tables = "CREATE TABLE plain(id INTEGER PRIMARY KEY, n INTEGER);"
                                  "CREATE TABLE guarded(id INTEGER PRIMARY KEY, n INTEGER);"
                                  "INSERT INTO plain VALUES (1, 0); INSERT INTO guarded VALUES (1, 0);";
static const char *const plain_update = "BEGIN IMMEDIATE; UPDATE plain SET n = n + 1 WHERE id = 1; COMMIT";

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_guard: %s: %s\n", what, why);
    exit(1);
}

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail(sql, message);
    }
}

static int64_t acquire(struct aster_serializer *store)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text("bench");
    operation.caller = aster_text("w");
    operation.ttl_ms = 3600000;
    if (aster_serializer_call(store, &operation, 0, &reply, &error) != ASTER_OK) {
        fail("acquire", error.message);
    }
    int64_t epoch = reply.decision.epoch;
    aster_reply_fini(&reply);
    return epoch;
}

static sqlite3 *prepare(const char *path)
{
    struct aster_error error = ASTER_ERROR_INIT;
    sqlite3 *db = NULL;
    char *protect = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        fail(path, sqlite3_errmsg(db));
    }
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    run(db, tables);
    if (aster_sqlite_register(db, &error) != ASTER_OK ||
        aster_sqlite_protect_sql("guarded", aster_text("bench"), NULL, &protect, &error) != ASTER_OK) {
        fail("protect", error.message);
    }
    run(db, protect);
    sqlite3_free(protect);
    return db;
}

/* The statements of one transaction, prepared once, as programs do. */
struct transaction {
    sqlite3_stmt *statements[4];
    int count;
};

static void prepare_all(sqlite3 *db, const char *sql, struct transaction *transaction)
{
    while (sql[0] != '\0') {
        if (sqlite3_prepare_v2(db, sql, -1, &transaction->statements[transaction->count++], &sql) != SQLITE_OK) {
            fail(sql, sqlite3_errmsg(db));
        }
    }
}

static double update_us(sqlite3 *db, const struct transaction *transaction)
{
    int64_t start_ns = bench_now_ns();
    for (int i = 0; i < UPDATES; i++) {
        for (int s = 0; s < transaction->count; s++) {
            int code = sqlite3_step(transaction->statements[s]);
            if (code != SQLITE_DONE && code != SQLITE_ROW) {
                fail("step", sqlite3_errmsg(db));
            }
            sqlite3_reset(transaction->statements[s]);
        }
    }
    return (double)(bench_now_ns() - start_ns) / 1000 / UPDATES;
}

static void finalize_all(struct transaction *transaction)
{
    for (int s = 0; s < transaction->count; s++) {
        sqlite3_finalize(transaction->statements[s]);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    char directory[200];
    char path[256];
    char guarded_update[200];
    double plain[ROUNDS];
    double guarded[ROUNDS];
    struct aster_serializer *store = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    snprintf(directory, sizeof directory, "%s/bench-guard-XXXXXX", argc > 1 ? argv[1] : ".");
    if (mkdtemp(directory) == NULL) {
        fail(directory, "cannot make a directory");
    }
    snprintf(path, sizeof path, "%s/shop.db", directory);
    if (aster_sqlite_open(path, NULL, &store, &error) != ASTER_OK) {
        fail("open", error.message);
    }
    snprintf(
        guarded_update, sizeof guarded_update,
        "BEGIN IMMEDIATE; SELECT aster_fence('bench', %lld, 'w'); UPDATE guarded SET n = n + 1 WHERE id = 1; COMMIT",
        (long long)acquire(store));
    sqlite3 *db = prepare(path);
    struct transaction plainly = {.count = 0};
    struct transaction fenced = {.count = 0};
    prepare_all(db, plain_update, &plainly);
    prepare_all(db, guarded_update, &fenced);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = update_us(db, &plainly);
        guarded[i] = update_us(db, &fenced);
    }
    qsort(plain, ROUNDS, sizeof *plain, compare);
    qsort(guarded, ROUNDS, sizeof *guarded, compare);
    double ratio = guarded[ROUNDS / 2] / plain[ROUNDS / 2];
    printf("one UPDATE in a transaction, synced: %.1f us\n", plain[ROUNDS / 2]);
    printf("the same, fence declared and checked: %.1f us = %.2f x (bound %.1f): %s\n", guarded[ROUNDS / 2], ratio,
           BOUND, ratio <= BOUND ? "met" : "MISSED");
    finalize_all(&plainly);
    finalize_all(&fenced);
    aster_serializer_destroy(store);
    sqlite3_close(db); /* the last one removes the log */
    unlink(path);
    return rmdir(directory) == 0 ? 0 : 1;
}
