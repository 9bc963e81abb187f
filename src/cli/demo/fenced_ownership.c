/* A fenced lease: the write carries the fence into the transaction that it belongs to. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sqlite.h"
#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/ownership.h"

#define CHANGE_TIMEOUT_MS 5000
#define BUSY_ATTEMPTS 10

struct fenced {
    struct aster_serializer *serializer;
    struct aster_lease *lease;
    sqlite3 *own; /* a connection that Aster knows nothing of */
    char worker[64];
    int64_t ttl_ms;
    int64_t kept_epoch; /* of the fence that check() found */
};

static struct aster_fence kept_fence(const struct fenced *self)
{
    return (struct aster_fence){aster_text(DEMO_RESOURCE), self->kept_epoch, aster_text(self->worker)};
}

static void fenced_close(void *opaque)
{
    struct fenced *self = opaque;
    aster_lease_destroy(self->lease);
    aster_serializer_destroy(self->serializer);
    sqlite3_close(self->own);
    free(self);
}

static aster_status fenced_open(const char *database, const char *worker, int64_t ttl_ms, void **opaque,
                                struct aster_error *error)
{
    struct fenced *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a worker");
    }
    snprintf(self->worker, sizeof self->worker, "%s", worker);
    self->ttl_ms = ttl_ms;
    aster_status status = aster_sqlite_open(database, NULL, &self->serializer, error);
    if (status == ASTER_OK) {
        status = aster_demo_store_connect(database, &self->own, error);
    }
    if (status == ASTER_OK) {
        status = aster_sqlite_register(self->own, error);
    }
    if (status != ASTER_OK) {
        fenced_close(self);
        return status;
    }
    *opaque = self;
    return ASTER_OK;
}

static void copy_name(char *out, size_t size, struct aster_bytes name)
{
    snprintf(out, size, "%.*s", (int)name.size, name.size > 0 ? (const char *)name.data : "");
}

static aster_status fenced_acquire(void *opaque, int64_t wait_ms, struct demo_grant *grant, struct aster_error *error)
{
    struct fenced *self = opaque;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = self->ttl_ms;
    options.wait_ms = wait_ms;
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_status status = aster_lease_acquire(self->serializer, aster_text(DEMO_RESOURCE), aster_text(self->worker),
                                              &options, &self->lease, &reply, error);
    if (status == ASTER_OK) {
        const struct aster_decision *decision = &reply.decision;
        *grant = (struct demo_grant){
            .granted = self->lease != NULL, .takeover = decision->takeover, .epoch = decision->epoch};
        snprintf(grant->reason, sizeof grant->reason, "%s", aster_reason_name(decision->reason));
        copy_name(grant->other, sizeof grant->other,
                  grant->granted ? decision->snapshot.last_holder : decision->snapshot.holder);
    }
    aster_reply_fini(&reply);
    return status;
}

static aster_status fenced_renewals(void *opaque, struct demo_renewals *renewals, struct aster_error *error)
{
    (void)error;
    struct fenced *self = opaque;
    struct aster_lease_report report;
    aster_lease_report_get(self->lease, &report);
    /* limit = sent + ttl - margin - ttl * drift, with the defaults of lease.h */
    int64_t margin_ms = self->ttl_ms / 10 < 1000 ? self->ttl_ms / 10 : 1000;
    int64_t drift_ns = aster_ms_to_ns(self->ttl_ms) / 1000000 * ASTER_LEASE_DRIFT_DEFAULT_PPM;
    renewals->count = report.renewals;
    renewals->last_ns = report.limit_ns - aster_ms_to_ns(self->ttl_ms - margin_ms) + drift_ns;
    return ASTER_OK;
}

static aster_status fenced_check(void *opaque, bool *allowed, int64_t *epoch, struct aster_error *error)
{
    (void)error;
    struct fenced *self = opaque;
    const struct aster_fence *fence = aster_lease_fence(self->lease);
    *allowed = fence != NULL;
    if (fence != NULL) {
        self->kept_epoch = fence->epoch;
        *epoch = fence->epoch;
    }
    return ASTER_OK;
}

struct write {
    const struct demo_publication *publication;
    struct aster_error *error;
};

static aster_status write_invoice(void *tx, void *user)
{
    const struct write *write = user;
    return aster_demo_store_publish(tx, write->publication, write->error);
}

static aster_status fenced_publish(void *opaque, const struct demo_publication *publication,
                                   struct aster_verdict *verdict, struct aster_error *error)
{
    struct fenced *self = opaque;
    struct aster_fence fence = kept_fence(self);
    struct write write = {publication, error};
    aster_status status = ASTER_ERR_BUSY;
    for (int attempt = 0; attempt < BUSY_ATTEMPTS && status == ASTER_ERR_BUSY; attempt++) {
        status = aster_mutate_fenced(self->serializer, &fence, aster_text(self->worker), write_invoice, &write, verdict,
                                     error);
    }
    return status;
}

/* What a program without the fence check does: a plain statement. The store has no triggers in this mode. */
static aster_status unchecked_publish(void *opaque, const struct demo_publication *publication,
                                      struct aster_verdict *verdict, struct aster_error *error)
{
    struct fenced *self = opaque;
    *verdict = (struct aster_verdict)ASTER_VERDICT_INIT;
    return aster_demo_store_publish(self->own, publication, error);
}

static aster_status try_raw_write(struct fenced *self, const struct demo_publication *publication,
                                  struct demo_aftermath *aftermath)
{
    sqlite3_stmt *declare = NULL;
    if (sqlite3_prepare_v2(self->own, "SELECT aster_fence(?1, ?2, ?3)", -1, &declare, NULL) != SQLITE_OK) {
        return ASTER_ERR_IO;
    }
    sqlite3_bind_text(declare, 1, DEMO_RESOURCE, -1, SQLITE_STATIC);
    sqlite3_bind_int64(declare, 2, self->kept_epoch);
    sqlite3_bind_text(declare, 3, self->worker, -1, SQLITE_STATIC);
    int declared = sqlite3_step(declare);
    sqlite3_finalize(declare);
    if (declared != SQLITE_ROW) {
        return ASTER_ERR_IO;
    }
    struct aster_error refusal = ASTER_ERROR_INIT;
    aftermath->raw_write_refused = aster_demo_store_publish(self->own, publication, &refusal) != ASTER_OK;
    snprintf(aftermath->raw_message, sizeof aftermath->raw_message, "%.*s", (int)sizeof aftermath->raw_message - 1,
             refusal.message);
    return ASTER_OK;
}

static aster_status fenced_aftermath(void *opaque, const struct demo_publication *publication,
                                     struct demo_aftermath *aftermath, struct aster_error *error)
{
    struct fenced *self = opaque;
    *aftermath = (struct demo_aftermath){0};
    aftermath->supplies_fence = aster_lease_fence(self->lease) != NULL;
    struct pollfd ended = {aster_lease_fd(self->lease), POLLIN, 0};
    if (ended.fd < 0 || poll(&ended, 1, CHANGE_TIMEOUT_MS) != 1) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT, "the lease handle did not notice within %d ms",
                               CHANGE_TIMEOUT_MS);
    }
    struct aster_lease_report report;
    aster_lease_report_get(self->lease, &report);
    aftermath->supplies_fence = aftermath->supplies_fence || aster_lease_fence(self->lease) != NULL;
    snprintf(aftermath->status, sizeof aftermath->status, "%s", aster_lease_status_name(report.status));
    if (try_raw_write(self, publication, aftermath) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_IO, "cannot declare a fence: %s", sqlite3_errmsg(self->own));
    }
    return ASTER_OK;
}

static aster_status fenced_release(void *opaque, struct aster_error *error)
{
    struct fenced *self = opaque;
    return aster_lease_release(self->lease, CHANGE_TIMEOUT_MS, NULL, error);
}

const struct demo_ownership_ops aster_demo_fenced_ownership = {fenced_open,    fenced_acquire, fenced_renewals,
                                                               fenced_check,   fenced_publish, fenced_aftermath,
                                                               fenced_release, fenced_close};
const struct demo_ownership_ops aster_demo_unchecked_ownership = {fenced_open,    fenced_acquire,    fenced_renewals,
                                                                  fenced_check,   unchecked_publish, fenced_aftermath,
                                                                  fenced_release, fenced_close};
