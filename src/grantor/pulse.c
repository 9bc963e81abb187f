#include "grantor/pulse.h"

#include <stdlib.h>

#include "base/error.h"
#include "platform/service.h"

struct grantor_pulse {
    struct grantor_state *state;
    struct aster_timer timer;
    int64_t interval_ns;
};

static void beat(struct aster_timer *timer, int64_t now_ns)
{
    struct grantor_pulse *pulse = (void *)((char *)timer - offsetof(struct grantor_pulse, timer));
    const struct grantor_state *state = pulse->state;
    aster_service_notify("WATCHDOG=1\nSTATUS=%s, %zu operations in flight%s", state->draining ? "Draining" : "Serving",
                         state->flights, grantor_store_fails(&state->counters) ? "; the store fails" : "");
    aster_timers_set(aster_loop_timers(state->loop), timer, now_ns + pulse->interval_ns);
}

static aster_status run_start(void *argument)
{
    struct grantor_pulse *pulse = argument;
    struct aster_loop *loop = pulse->state->loop;
    aster_status status = aster_timers_reserve(aster_loop_timers(loop), NULL);
    if (status == ASTER_OK) {
        aster_timers_set(aster_loop_timers(loop), &pulse->timer, aster_loop_now_ns(loop));
    }
    return status;
}

static aster_status run_stop(void *argument)
{
    struct grantor_pulse *pulse = argument;
    struct aster_timers *timers = aster_loop_timers(pulse->state->loop);
    aster_timers_unset(timers, &pulse->timer);
    aster_timers_unreserve(timers);
    return ASTER_OK;
}

aster_status grantor_pulse_start(struct grantor_state *state, struct grantor_pulse **pulse, struct aster_error *error)
{
    int64_t patience_ns = aster_service_watchdog_ns();
    *pulse = NULL;
    if (patience_ns == 0) {
        return ASTER_OK;
    }
    struct grantor_pulse *made = calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (struct grantor_pulse){state, {.fire = beat}, patience_ns / 2};
    }
    if (made == NULL || aster_loop_call(state->loop, run_start, made) != ASTER_OK) {
        free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the watchdog's timer");
    }
    *pulse = made;
    return ASTER_OK;
}

void grantor_pulse_stop(struct grantor_pulse *pulse)
{
    if (pulse != NULL) {
        aster_loop_call(pulse->state->loop, run_stop, pulse);
        free(pulse);
    }
}
