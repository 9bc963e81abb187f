#include "cli/demo/leased.h"

#include <stdio.h>

#include "base/checked.h"

#define RELEASE_TIMEOUT_MS 5000

struct aster_fence aster_demo_leased_fence(const struct demo_leased *leased)
{
    return (struct aster_fence){aster_text(DEMO_RESOURCE), leased->kept_epoch, aster_text(leased->holder)};
}

static void copy_name(char *out, size_t size, struct aster_bytes name)
{
    snprintf(out, size, "%.*s", (int)name.size, name.size > 0 ? (const char *)name.data : "");
}

aster_status aster_demo_leased_acquire(void *self, int64_t wait_ms, struct demo_grant *grant, struct aster_error *error)
{
    struct demo_leased *leased = self;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = leased->ttl_ms;
    options.wait_ms = wait_ms;
    options.on_status = leased->on_status;
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_status status = aster_lease_acquire(leased->serializer, aster_text(DEMO_RESOURCE), aster_text(leased->holder),
                                              &options, &leased->lease, &reply, error);
    if (status == ASTER_OK) {
        const struct aster_decision *decision = &reply.decision;
        leased->value_revision = decision->snapshot.value_revision;
        *grant = (struct demo_grant){
            .granted = leased->lease != NULL, .takeover = decision->takeover, .epoch = decision->epoch};
        snprintf(grant->reason, sizeof grant->reason, "%s", aster_reason_name(decision->reason));
        copy_name(grant->other, sizeof grant->other,
                  grant->granted ? decision->snapshot.last_holder : decision->snapshot.holder);
    }
    aster_reply_fini(&reply);
    return status;
}

aster_status aster_demo_leased_renewals(void *self, struct demo_renewals *renewals, struct aster_error *error)
{
    (void)error;
    struct demo_leased *leased = self;
    struct aster_lease_report report;
    aster_lease_report_get(leased->lease, &report);
    /* limit = sent + ttl - margin - ttl * drift, with the defaults of lease.h */
    int64_t margin_ms = leased->ttl_ms / 10 < 1000 ? leased->ttl_ms / 10 : 1000;
    int64_t drift_ns = aster_ms_to_ns(leased->ttl_ms) / 1000000 * ASTER_LEASE_DRIFT_DEFAULT_PPM;
    renewals->count = report.renewals;
    renewals->last_ns = report.limit_ns - aster_ms_to_ns(leased->ttl_ms - margin_ms) + drift_ns;
    return ASTER_OK;
}

aster_status aster_demo_leased_check(void *self, bool *allowed, int64_t *epoch, struct aster_error *error)
{
    (void)error;
    struct demo_leased *leased = self;
    const struct aster_fence *fence = aster_lease_fence(leased->lease);
    *allowed = fence != NULL;
    if (fence != NULL) {
        leased->kept_epoch = fence->epoch;
        *epoch = fence->epoch;
    }
    return ASTER_OK;
}

aster_status aster_demo_leased_release(void *self, struct aster_error *error)
{
    struct demo_leased *leased = self;
    return aster_lease_release(leased->lease, RELEASE_TIMEOUT_MS, NULL, error);
}

void aster_demo_leased_fini(struct demo_leased *leased)
{
    aster_lease_destroy(leased->lease);
    aster_serializer_destroy(leased->serializer);
}
