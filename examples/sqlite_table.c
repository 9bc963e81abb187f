/* Protect a table of your own: whoever was replaced cannot write it any more, whatever it still believes.
 * Build: cc sqlite_table.c $(pkg-config --cflags --libs libaster-sqlite) */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <aster/lease.h>
#include <aster/sqlite.h>

static aster_status add_invoice(void *tx, void *text) /* tx is an open transaction: your SQL goes here */
{
    char *sql = sqlite3_mprintf("INSERT INTO invoice (text) VALUES (%Q)", (const char *)text);
    int code = sqlite3_exec(tx, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? ASTER_OK : ASTER_ERR_IO;
}

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* Become the holder of "shop", renewed in the background from now on. */
static struct aster_lease *acquire(struct aster_serializer *store, const char *worker)
{
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 10000;
    if (aster_lease_acquire(store, aster_text("shop"), aster_text(worker), &options, &lease, NULL, &error) !=
        ASTER_OK) {
        fail("acquire", error.message);
    }
    if (lease == NULL) {
        fail("acquire", "somebody else holds it"); /* an answer, not an error: pass a reply to see who */
    }
    return lease;
}

/* Write under a fence. Whether it is the current one is decided in the transaction that writes. */
static enum aster_reason write_invoice(struct aster_serializer *store, const struct aster_fence *fence, char *text)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    if (aster_mutate_fenced(store, fence, fence->holder, add_invoice, text, &verdict, &error) != ASTER_OK) {
        fail("write", error.message);
    }
    printf("%-22s %s (carried epoch %lld, current %lld)\n", text,
           verdict.reason == ASTER_REASON_NONE ? "written" : aster_reason_name(verdict.reason),
           (long long)verdict.carried_epoch, (long long)verdict.current_epoch);
    return verdict.reason;
}

/* Your table, and the triggers that hold every program to the fence of "shop". */
static sqlite3 *create_table(const char *path)
{
    sqlite3 *db = NULL;
    char *protect = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_sqlite_protect_sql("invoice", aster_text("shop"), NULL, &protect, &error) != ASTER_OK) {
        fail("protect", error.message);
    }
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "CREATE TABLE invoice (text TEXT NOT NULL)", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, protect, NULL, NULL, NULL) != SQLITE_OK) {
        fail("create", sqlite3_errmsg(db));
    }
    sqlite3_free(protect);
    return db;
}

int main(void)
{
    char path[] = "/tmp/aster-example-XXXXXX";
    struct aster_serializer *store = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    close(mkstemp(path));
    if (aster_sqlite_open(path, NULL, &store, &error) != ASTER_OK) {
        fail("open", error.message);
    }
    sqlite3 *db = create_table(path);

    /* A asks for its fence and writes. It still has that fence in hand when an operator takes the lease away. */
    struct aster_lease *lease_a = acquire(store, "A");
    const struct aster_fence *fence_a = aster_lease_fence(lease_a);
    if (fence_a == NULL) {
        fail("fence", "the lease ended"); /* never write without asking */
    }
    bool written = write_invoice(store, fence_a, "by A") == ASTER_REASON_NONE;
    if (aster_revoke(store, aster_text("shop"), aster_text("operator"), fence_a->epoch, &reply, &error) != ASTER_OK) {
        fail("revoke", error.message);
    }
    struct aster_lease *lease_b = acquire(store, "B");

    /* A is refused through the library; so is any program that goes around it, here one without the guard's functions.
     */
    bool refused = write_invoice(store, fence_a, "late, by A") == ASTER_REASON_STALE_EPOCH;
    bool guarded = sqlite3_exec(db, "INSERT INTO invoice VALUES ('around it')", NULL, NULL, NULL) != SQLITE_OK;
    printf("%-22s %s\n", "without any fence", guarded ? sqlite3_errmsg(db) : "let through");

    if (aster_lease_release(lease_b, 5000, NULL, &error) != ASTER_OK) {
        fail("release", error.message);
    }
    aster_lease_destroy(lease_a);
    aster_lease_destroy(lease_b);
    aster_reply_fini(&reply);
    aster_serializer_destroy(store);
    sqlite3_close(db);
    unlink(path);
    return written && refused && guarded ? EXIT_SUCCESS : EXIT_FAILURE;
}
