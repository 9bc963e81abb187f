/* A handle's memory, references and status. */
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "lease/handle.h"

static void bind_request(struct aster_lease *lease, struct lease_request *request)
{
    request->lease = lease;
    request->request = (struct aster_request)ASTER_REQUEST_INIT;
    request->request.operation.resource = lease->fence.resource;
    request->request.operation.caller = lease->fence.holder;
    request->request.user = request;
}

aster_status lease_create(struct aster_runtime *runtime, struct aster_serializer *serializer,
                          struct aster_bytes resource, struct aster_bytes holder,
                          const struct aster_lease_options *options, const struct aster_renew_plan *plan,
                          struct aster_lease **lease, struct aster_error *error)
{
    struct aster_lease *made = aster_alloc(sizeof *made + resource.size + holder.size);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a lease handle");
    }
    memset(made, 0, sizeof *made);
    atomic_init(&made->fence_limit_ns, NO_FENCE);
    made->clock = runtime->clock;
    made->generation = runtime->generation;
    memcpy(made->bytes, resource.data, resource.size);
    memcpy(made->bytes + resource.size, holder.data, holder.size);
    made->fence.resource = (struct aster_bytes){made->bytes, resource.size};
    made->fence.holder = (struct aster_bytes){made->bytes + resource.size, holder.size};
    made->runtime = runtime;
    made->serializer = aster_serializer_ref(serializer);
    made->plan = *plan;
    made->on_status = options->on_status;
    made->user = options->user;
    made->references = 1;
    made->status = ASTER_LEASE_ACQUIRING;
    made->phase = PHASE_ACQUIRE;
    made->next_ns = NEVER;
    made->event_fd = -1;
    bind_request(made, &made->main);
    bind_request(made, &made->release);
    made->acquire_flags = options->take_over_own ? ASTER_OP_TAKE_OVER_OWN : 0;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *lease = made;
    return ASTER_OK;
}

void lease_free(struct aster_lease *lease)
{
    aster_serializer_unref(lease->serializer);
    aster_reply_fini(&lease->grant);
    aster_reply_fini(&lease->release_reply);
    pthread_cond_destroy(&lease->changed);
    if (lease->event_fd >= 0) {
        close(lease->event_fd);
    }
    free(lease);
}

void lease_unref(struct aster_lease *lease)
{
    struct aster_runtime *runtime = lease->runtime;
    if (--lease->references > 0) {
        return;
    }
    /* Giving up the serializer may block for its threads: not with the mutex locked. */
    lease->next_dead = runtime->dead;
    runtime->dead = lease;
    runtime->handles--;
}

static bool is_over(enum aster_lease_status status)
{
    return status != ASTER_LEASE_ACQUIRING && status != ASTER_LEASE_HELD;
}

void lease_set_status(struct aster_lease *lease, enum aster_lease_status status, enum aster_lease_reason reason)
{
    if (lease->status == status) {
        return;
    }
    lease->status = status;
    lease->reason = reason;
    if (lease->event_fd >= 0 && is_over(status)) {
        eventfd_write(lease->event_fd, 1);
    }
    bool unseen = lease->blocking && status == ASTER_LEASE_NOT_GRANTED;
    if (lease->on_status != NULL && !lease->destroyed && !unseen && lease->change_count < STATUS_CHANGES_MAX) {
        lease->changes[lease->change_count++] = (unsigned char)status;
        lease_dispatcher_queue(lease);
    }
    pthread_cond_broadcast(&lease->changed);
}

void lease_supply(struct aster_lease *lease)
{
    bool supplies = lease->status == ASTER_LEASE_HELD && !lease->quiesced;
    atomic_store_explicit(&lease->fence_limit_ns, supplies ? lease->limit_ns : NO_FENCE, memory_order_release);
}

void lease_end(struct aster_lease *lease, enum aster_lease_status status, enum aster_lease_reason reason)
{
    lease->phase = PHASE_ENDED;
    lease_set_status(lease, status, reason);
    lease_supply(lease);
    lease_timer_set(lease, NEVER);
}

void lease_note_error(struct aster_lease *lease, aster_status status, const struct aster_error *error)
{
    if (error != NULL) {
        lease->last_error = *error;
        lease->last_error.status = status;
    } else {
        aster_error_set(&lease->last_error, status, "the serializer answered %s", aster_status_name(status));
    }
}
