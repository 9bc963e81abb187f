/* A fenced lease: the write carries the fence into the transaction that it belongs to. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "cli/demo/leased.h"

#define CHANGE_TIMEOUT_MS 5000
#define BUSY_ATTEMPTS 10

struct fenced {
    struct demo_leased leased;
    sqlite3 *own; /* a connection that Aster knows nothing of */
};

static void fenced_close(void *opaque)
{
    struct fenced *self = opaque;
    aster_demo_leased_fini(&self->leased);
    sqlite3_close(self->own);
    free(self);
}

static aster_status fenced_open(const struct demo_place *place, void **opaque, struct aster_error *error)
{
    struct fenced *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a worker");
    }
    snprintf(self->leased.holder, sizeof self->leased.holder, "%s", place->worker);
    self->leased.ttl_ms = place->ttl_ms;
    aster_status status = aster_sqlite_open(place->database, NULL, &self->leased.serializer, error);
    if (status == ASTER_OK) {
        status = aster_demo_store_connect(place->database, &self->own, error);
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
    struct aster_fence fence = aster_demo_leased_fence(&self->leased);
    struct write write = {publication, error};
    aster_status status = ASTER_ERR_BUSY;
    for (int attempt = 0; attempt < BUSY_ATTEMPTS && status == ASTER_ERR_BUSY; attempt++) {
        status =
            aster_mutate_fenced(self->leased.serializer, &fence, fence.holder, write_invoice, &write, verdict, error);
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
    sqlite3_bind_int64(declare, 2, self->leased.kept_epoch);
    sqlite3_bind_text(declare, 3, self->leased.holder, -1, SQLITE_STATIC);
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
    aftermath->supplies_fence = aster_lease_fence(self->leased.lease) != NULL;
    struct pollfd ended = {aster_lease_fd(self->leased.lease), POLLIN, 0};
    if (ended.fd < 0 || poll(&ended, 1, CHANGE_TIMEOUT_MS) != 1) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT, "the lease handle did not notice within %d ms",
                               CHANGE_TIMEOUT_MS);
    }
    struct aster_lease_report report;
    aster_lease_report_get(self->leased.lease, &report);
    aftermath->supplies_fence = aftermath->supplies_fence || aster_lease_fence(self->leased.lease) != NULL;
    snprintf(aftermath->status, sizeof aftermath->status, "%s", aster_lease_status_name(report.status));
    if (try_raw_write(self, publication, aftermath) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_IO, "cannot declare a fence: %s", sqlite3_errmsg(self->own));
    }
    return ASTER_OK;
}

const struct demo_ownership_ops aster_demo_fenced_ownership = {
    fenced_open,    aster_demo_leased_acquire, aster_demo_leased_renewals, aster_demo_leased_check,
    fenced_publish, fenced_aftermath,          aster_demo_leased_release,  fenced_close};
const struct demo_ownership_ops aster_demo_unchecked_ownership = {
    fenced_open,       aster_demo_leased_acquire, aster_demo_leased_renewals, aster_demo_leased_check,
    unchecked_publish, fenced_aftermath,          aster_demo_leased_release,  fenced_close};
