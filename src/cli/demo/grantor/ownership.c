/* A lease of a grantor: the invoice is the fenced value of its resource, so the grantor itself checks the write. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "aster/grantor.h"
#include "base/error.h"
#include "cli/demo/leased.h"
#include "cli/demo/say.h"
#include "cli/demo/timeline.h"

#define PUBLISH_TIMEOUT_MS 25000 /* a write may be under way for as long as the network is out */
#define IDLE_TIMEOUT_MS 1000     /* below the ttl, so that a dead connection is replaced in time */
#define CONNECT_TIMEOUT_MS 1000

static void grantor_close(void *opaque)
{
    struct demo_leased *self = opaque;
    aster_demo_leased_fini(self);
    free(self);
}

/* The handle ends by itself, at its self-limit, whoever can or cannot be reached. */
static void on_status(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    (void)user;
    if (status == ASTER_LEASE_LOST || status == ASTER_LEASE_FENCED) {
        struct aster_lease_report report;
        aster_lease_report_get(lease, &report);
        aster_demo_say(DEMO_SAYS_ENDED, aster_demo_now_ns(), report.epoch, aster_lease_fence(lease) != NULL,
                       aster_lease_status_name(status), "%" PRId64, report.limit_ns);
    }
}

static aster_status grantor_open(const struct demo_place *place, void **opaque, struct aster_error *error)
{
    struct demo_leased *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a worker");
    }
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    options.addresses = place->grantor;
    options.node = place->node;
    options.idle_timeout_ms = IDLE_TIMEOUT_MS;
    options.connect_timeout_ms = CONNECT_TIMEOUT_MS;
    options.without_tcp = true; /* the demo's relay is for UDP */
    aster_status status = aster_grantor_open(&options, &self->serializer, error);
    if (status != ASTER_OK) {
        grantor_close(self);
        return status;
    }
    struct aster_bytes id = aster_grantor_identity(self->serializer);
    snprintf(self->holder, sizeof self->holder, "%.*s", (int)id.size, (const char *)id.data);
    self->ttl_ms = place->ttl_ms;
    self->on_status = on_status;
    *opaque = self;
    return ASTER_OK;
}

static aster_status grantor_publish(void *opaque, const struct demo_publication *publication,
                                    struct aster_verdict *verdict, struct aster_error *error)
{
    struct demo_leased *self = opaque;
    struct aster_operation put = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    put.kind = ASTER_OP_PUT;
    put.resource = aster_text(DEMO_RESOURCE);
    put.caller = put.holder = aster_text(self->holder);
    put.epoch = self->kept_epoch;
    put.value_revision = self->value_revision;
    put.value = (struct aster_bytes){publication->pdf, publication->pdf_size};
    aster_status status = aster_serializer_call(self->serializer, &put, PUBLISH_TIMEOUT_MS, &reply, error);
    if (status == ASTER_OK) {
        *verdict = (struct aster_verdict)ASTER_VERDICT_INIT;
        verdict->reason = reply.decision.reason;
        verdict->carried_epoch = put.epoch;
        verdict->current_epoch = reply.decision.snapshot.epoch;
    }
    aster_reply_fini(&reply);
    return status;
}

const struct demo_ownership_ops aster_demo_grantor_ownership = {grantor_open,
                                                                aster_demo_leased_acquire,
                                                                aster_demo_leased_renewals,
                                                                aster_demo_leased_check,
                                                                grantor_publish,
                                                                NULL,
                                                                aster_demo_leased_release,
                                                                grantor_close};
