/* The fenced write. The path of a valid fence takes one hash, one lock and one comparison; all that makes a refusal
 * helpful is kept off it. */
#include "base/error.h"
#include "serializer/memory/internal.h"

static aster_status check_names(const struct aster_fence *fence, struct aster_bytes writer, struct aster_error *error)
{
    aster_status status = aster_resource_check(fence->resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK) {
        status = aster_identity_check(writer, "writer", error);
    }
    return status;
}

/* With the lock held. The epoch of an absent row is the floor, which this stripe may not have heard of yet. */
static void refuse(struct memory *memory, struct memory_stripe *stripe, uint64_t hash, const struct aster_fence *fence,
                   struct aster_bytes writer, struct aster_verdict *verdict)
{
    aster_memory_learn_floor(memory, stripe);
    *verdict = aster_table_fence_hashed(stripe->table, hash, fence, writer);
    const struct aster_event event = {.unix_ms = aster_clock_unix_ms(&memory->clock),
                                      .kind = ASTER_EVENT_FENCE_REJECTED,
                                      .reason = verdict->reason,
                                      .resource = fence->resource,
                                      .actor = writer,
                                      .epoch = verdict->current_epoch,
                                      .carried_epoch = fence->epoch};
    aster_memory_history_add(&memory->history, &event);
}

static __attribute__((noinline)) aster_status
refuse_and_unlock(struct memory *memory, struct memory_stripe *stripe, uint64_t hash, const struct aster_fence *fence,
                  struct aster_bytes writer, struct aster_verdict *verdict, struct aster_error *error)
{
    struct aster_verdict refused;
    aster_status status = stripe->closed ? aster_error_set(error, ASTER_ERR_CLOSED, "the memory serializer is closed")
                                         : check_names(fence, writer, error);
    if (status == ASTER_OK) {
        refuse(memory, stripe, hash, fence, writer, &refused);
    }
    aster_memory_stripe_unlock(memory, stripe);
    if (status == ASTER_OK) {
        *verdict = refused;
    }
    return status;
}

aster_status aster_memory_mutate_fenced(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                        aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                        struct aster_error *error)
{
    struct memory *memory = self;
    uint64_t hash = aster_siphash(&memory->key, fence->resource);
    struct memory_stripe *stripe = memory_stripe_of(memory, hash);
    aster_memory_stripe_lock(stripe);
    const struct aster_verdict found = aster_table_fence_hashed(stripe->table, hash, fence, writer);
    if (found.reason != ASTER_REASON_NONE || stripe->closed) {
        return refuse_and_unlock(memory, stripe, hash, fence, writer, verdict, error);
    }
    aster_status status = mutation(NULL, user);
    aster_memory_stripe_unlock(memory, stripe);
    if (status != ASTER_OK) {
        return aster_error_set(error, status, "the mutation failed: %s", aster_status_name(status));
    }
    *verdict = found;
    return ASTER_OK;
}
