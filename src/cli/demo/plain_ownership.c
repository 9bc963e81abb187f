/* What many programs do instead: a row with a holder and an expiry time, looked at before the write. The check is
 * correct at the moment it is made; nothing holds the write itself to it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/ownership.h"
#include "cli/demo/timeline.h"

#define POLL_MS 20

struct plain {
    sqlite3 *db;
    char worker[64];
    int64_t ttl_ms;
    int64_t expires_ns;
    int64_t epoch; /* the lease's number; shown, never checked */
    struct demo_renewals renewals;
};

static void plain_close(void *opaque)
{
    struct plain *self = opaque;
    sqlite3_close(self->db);
    free(self);
}

static aster_status plain_open(const struct demo_place *place, void **opaque, struct aster_error *error)
{
    struct plain *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a worker");
    }
    snprintf(self->worker, sizeof self->worker, "%s", place->worker);
    self->ttl_ms = place->ttl_ms;
    aster_status status = aster_demo_store_connect(place->database, &self->db, error);
    if (status == ASTER_OK &&
        sqlite3_exec(self->db,
                     "CREATE TABLE IF NOT EXISTS plain_lease (name TEXT PRIMARY KEY, holder TEXT NOT NULL,"
                     " expires_ns INTEGER NOT NULL, number INTEGER NOT NULL) STRICT",
                     NULL, NULL, NULL) != SQLITE_OK) {
        status = aster_error_set(error, ASTER_ERR_IO, "cannot create the lease table: %s", sqlite3_errmsg(self->db));
    }
    if (status != ASTER_OK) {
        plain_close(self);
        return status;
    }
    *opaque = self;
    return ASTER_OK;
}

/* Runs a statement whose parameters are ?1 worker, ?2 now, ?3 the expiry; *row tells whether it returned one, with
 * its columns in *number and holder. */
static aster_status run_sql(struct plain *self, const char *sql, int64_t now_ns, bool *row, int64_t *number,
                            char holder[64], struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(self->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return aster_error_set(error, ASTER_ERR_IO, "plain lease: %s", sqlite3_errmsg(self->db));
    }
    int parameters = sqlite3_bind_parameter_count(statement);
    sqlite3_bind_text(statement, 1, self->worker, -1, SQLITE_STATIC);
    if (parameters >= 3) {
        sqlite3_bind_int64(statement, 2, now_ns);
        sqlite3_bind_int64(statement, 3, now_ns + aster_ms_to_ns(self->ttl_ms));
    }
    int step = sqlite3_step(statement);
    *row = step == SQLITE_ROW;
    if (*row) {
        *number = sqlite3_column_int64(statement, 0);
        snprintf(holder, 64, "%s", (const char *)sqlite3_column_text(statement, 1));
    }
    if (step == SQLITE_ROW) {
        step = sqlite3_step(statement);
    }
    aster_status status = ASTER_OK;
    if (step != SQLITE_DONE) {
        status = aster_error_set(error, ASTER_ERR_IO, "plain lease: %s", sqlite3_errmsg(self->db));
    }
    sqlite3_finalize(statement);
    return status;
}

static aster_status try_acquire(struct plain *self, struct demo_grant *grant, struct aster_error *error)
{
    bool row = false;
    int64_t number = 0;
    char holder[64] = "";
    char before[64] = "";
    aster_status status =
        run_sql(self, "SELECT number, holder FROM plain_lease WHERE ?1 <> ''", 0, &row, &number, before, error);
    if (status != ASTER_OK) {
        return status;
    }
    int64_t now_ns = aster_demo_now_ns();
    bool had_holder = row;
    status =
        run_sql(self,
                "INSERT INTO plain_lease (name, holder, expires_ns, number) VALUES ('" DEMO_RESOURCE "', ?1, ?3, 1)"
                " ON CONFLICT (name) DO UPDATE SET holder = ?1, expires_ns = ?3, number = number + 1"
                " WHERE expires_ns <= ?2 RETURNING number, holder",
                now_ns, &row, &number, holder, error);
    if (status != ASTER_OK) {
        return status;
    }
    *grant = (struct demo_grant){.granted = row, .takeover = row && had_holder, .epoch = number};
    snprintf(grant->reason, sizeof grant->reason, "%s", row ? "-" : "HELD_BY_OTHER");
    snprintf(grant->other, sizeof grant->other, "%s", before);
    if (row) {
        self->expires_ns = now_ns + aster_ms_to_ns(self->ttl_ms);
        self->epoch = number;
        self->renewals = (struct demo_renewals){0, now_ns};
    }
    return ASTER_OK;
}

static aster_status plain_acquire(void *opaque, int64_t wait_ms, struct demo_grant *grant, struct aster_error *error)
{
    struct plain *self = opaque;
    int64_t until_ns = aster_demo_now_ns() + aster_ms_to_ns(wait_ms);
    for (;;) {
        aster_status status = try_acquire(self, grant, error);
        if (status != ASTER_OK || grant->granted || aster_demo_now_ns() >= until_ns) {
            return status;
        }
        nanosleep(&(struct timespec){0, aster_ms_to_ns(POLL_MS)}, NULL);
    }
}

static aster_status plain_renewals(void *opaque, struct demo_renewals *renewals, struct aster_error *error)
{
    struct plain *self = opaque;
    int64_t now_ns = aster_demo_now_ns();
    if (now_ns - self->renewals.last_ns >= aster_ms_to_ns(self->ttl_ms) / 3) {
        bool row = false;
        int64_t number = 0;
        char holder[64];
        aster_status status = run_sql(self,
                                      "UPDATE plain_lease SET expires_ns = ?3 WHERE holder = ?1 AND expires_ns > ?2"
                                      " RETURNING number, holder",
                                      now_ns, &row, &number, holder, error);
        if (status != ASTER_OK) {
            return status;
        }
        if (row) {
            self->expires_ns = now_ns + aster_ms_to_ns(self->ttl_ms);
            self->renewals = (struct demo_renewals){self->renewals.count + 1, now_ns};
        }
    }
    *renewals = self->renewals;
    return ASTER_OK;
}

static aster_status plain_check(void *opaque, bool *allowed, int64_t *epoch, struct aster_error *error)
{
    (void)error;
    struct plain *self = opaque;
    *allowed = aster_demo_now_ns() < self->expires_ns;
    *epoch = self->epoch;
    return ASTER_OK;
}

static aster_status plain_publish(void *opaque, const struct demo_publication *publication,
                                  struct aster_verdict *verdict, struct aster_error *error)
{
    struct plain *self = opaque;
    *verdict = (struct aster_verdict)ASTER_VERDICT_INIT;
    return aster_demo_store_publish(self->db, publication, error);
}

static aster_status plain_release(void *opaque, struct aster_error *error)
{
    struct plain *self = opaque;
    bool row = false;
    int64_t number = 0;
    char holder[64];
    return run_sql(self, "UPDATE plain_lease SET expires_ns = 0 WHERE holder = ?1 RETURNING number, holder", 0, &row,
                   &number, holder, error);
}

const struct demo_ownership_ops aster_demo_plain_ownership = {
    plain_open, plain_acquire, plain_renewals, plain_check, plain_publish, NULL, plain_release, plain_close};
