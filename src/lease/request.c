/* Sending a handle's requests, and sorting their answers to whom they concern. */
#include "lease/handle.h"

#include "base/checked.h"

bool lease_status_is_transient(aster_status status)
{
    switch (status) {
    case ASTER_ERR_TIMEOUT:
    case ASTER_ERR_INDETERMINATE:
    case ASTER_ERR_BUSY:
    case ASTER_ERR_UNREACHABLE:
    case ASTER_ERR_CANCELLED: /* given back at its deadline */
        return true;
    default:
        return false;
    }
}

int64_t lease_next_retry(struct aster_lease *lease, int64_t first_ns, int64_t last_ns)
{
    int64_t delay_ns = lease->retry_ns > first_ns ? lease->retry_ns : first_ns;
    lease->retry_ns = delay_ns * 2 < last_ns ? delay_ns * 2 : last_ns;
    return lease_runtime_jitter(lease->runtime, delay_ns);
}

/* One reference at least is the request's own, so the handle is alive. */
static void on_answer(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                      const struct aster_error *error)
{
    struct lease_request *answered = request->user;
    struct aster_lease *lease = answered->lease;
    struct aster_runtime *runtime = lease->runtime;
    struct outbox outbox;
    outbox_init(&outbox);
    lease_runtime_lock(runtime);
    answered->in_flight = false;
    if (answered == &lease->release) {
        if (lease->phase == PHASE_RELEASE) {
            lease_release_answer(lease, status, decision, error);
        }
    } else if (lease->phase == PHASE_ACQUIRE || lease->phase == PHASE_CONFIRM) {
        lease_acquire_answer(lease, status, decision, error, &outbox);
    } else if (lease->phase == PHASE_HOLD) {
        lease_renew_answer(lease, status, decision, error);
    }
    lease_unref(lease);
    lease_runtime_unlock_leaving_dead(runtime, &outbox);
}

void lease_request_send(struct aster_lease *lease, struct lease_request *request, int64_t deadline_ns,
                        struct outbox *outbox)
{
    request->in_flight = true;
    request->given_back = false;
    request->sent_ns = aster_clock_now_ns(lease->clock);
    request->deadline_ns = deadline_ns;
    request->request.deadline_ns = deadline_ns;
    request->request.complete = on_answer;
    lease->references++;
    outbox->is_release[outbox->send_count] = request == &lease->release;
    outbox->send[outbox->send_count++] = lease;
}

void lease_request_give_back(struct lease_request *request, struct outbox *outbox)
{
    if (request->in_flight && !request->given_back) {
        request->given_back = true;
        request->lease->references++; /* until the serializer was asked */
        outbox->give_back[outbox->give_back_count++] = request;
    }
}
