/* Protect a table of your own: whoever was replaced cannot write it any more, whatever it still believes.
 * Build: cc sqlite_table.c $(pkg-config --cflags --libs aster-sqlite) */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/aster.h"
#include "aster/sqlite.h"

static aster_status add_invoice(void *tx, void *text) /* tx is an open transaction: your SQL goes here */
{
    char *sql = sqlite3_mprintf("INSERT INTO invoice (text) VALUES (%Q)", (const char *)text);
    int code = sqlite3_exec(tx, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return code == SQLITE_OK ? ASTER_OK : ASTER_ERR_IO;
}

static int fail(const char *what, const struct aster_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
    return EXIT_FAILURE;
}

/* Become the holder of "shop" and remember under which epoch. */
static aster_status acquire(struct aster_serializer *store, const char *worker, int64_t *epoch,
                            struct aster_error *error)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text("shop");
    operation.caller = aster_text(worker);
    operation.ttl_ms = 10000;
    aster_status status = aster_serializer_call(store, &operation, 0, &reply, error);
    *epoch = reply.decision.epoch;
    aster_reply_fini(&reply);
    return status;
}

int main(void)
{
    char path[] = "/tmp/aster-example-XXXXXX";
    struct aster_serializer *store = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    int64_t epoch = 0;
    close(mkstemp(path));

    /* Your table, and the triggers that hold every program to the fence of "shop". */
    sqlite3 *db = NULL;
    char *protect = NULL;
    if (aster_sqlite_open(path, NULL, &store, &error) != ASTER_OK ||
        aster_sqlite_protect_sql("invoice", aster_text("shop"), &protect, &error) != ASTER_OK) {
        return fail("open", &error);
    }
    sqlite3_open(path, &db);
    sqlite3_exec(db, "CREATE TABLE invoice (text TEXT NOT NULL)", NULL, NULL, NULL);
    sqlite3_exec(db, protect, NULL, NULL, NULL);

    /* A is the holder and writes; then an operator takes the lease away and B gets it. */
    if (acquire(store, "A", &epoch, &error) != ASTER_OK) {
        return fail("acquire", &error);
    }
    const struct aster_fence a = {aster_text("shop"), epoch, aster_text("A")};
    if (aster_mutate_fenced(store, &a, aster_text("A"), add_invoice, "by A", &verdict, &error) != ASTER_OK) {
        return fail("write", &error);
    }
    printf("A writes under epoch %lld: %s\n", (long long)epoch, aster_reason_name(verdict.reason));
    if (aster_revoke(store, aster_text("shop"), aster_text("operator"), epoch, &reply, &error) != ASTER_OK ||
        acquire(store, "B", &epoch, &error) != ASTER_OK) {
        return fail("takeover", &error);
    }

    /* A does not know, and is refused: through the library, and around it. */
    if (aster_mutate_fenced(store, &a, aster_text("A"), add_invoice, "late, by A", &verdict, &error) != ASTER_OK) {
        return fail("write", &error);
    }
    printf("A writes late: %s, it carried %lld and the current epoch is %lld\n", aster_reason_name(verdict.reason),
           (long long)verdict.carried_epoch, (long long)verdict.current_epoch);
    bool around = sqlite3_exec(db, "INSERT INTO invoice VALUES ('around it')", NULL, NULL, NULL) == SQLITE_OK;
    printf("a program without the fence: %s\n", around ? "let through" : sqlite3_errmsg(db));

    sqlite3_free(protect);
    sqlite3_close(db);
    aster_reply_fini(&reply);
    aster_serializer_destroy(store);
    unlink(path);
    return verdict.reason == ASTER_REASON_STALE_EPOCH && !around ? EXIT_SUCCESS : EXIT_FAILURE;
}
