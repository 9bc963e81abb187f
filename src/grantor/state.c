#include "grantor/state.h"

#include <stdlib.h>

#include "base/error.h"
#include "grantor/calls.h"
#include "grantor/flight.h"
#include "grantor/page.h"
#include "grantor/peers.h"
#include "grantor/repeats.h"
#include "grantor/session.h"

aster_status grantor_state_init(struct grantor_state *state, struct aster_error *error)
{
    state->renewals_end = &state->renewals;
    state->others_end = &state->others;
    state->in = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    state->out = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    state->frame = malloc(ASTER_FRAME_PAYLOAD_MAX);
    state->page = grantor_page_create();
    if (state->in.data == NULL || state->out.data == NULL || state->frame == NULL || state->page == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the server's buffers");
    }
    aster_status status = grantor_peers_create(&state->peers, error);
    if (status == ASTER_OK) {
        status = grantor_repeats_create(&state->repeats, error);
    }
    return status == ASTER_OK ? grantor_calls_create(&state->calls, error) : status;
}

void grantor_state_fini(struct grantor_state *state)
{
    grantor_repeats_destroy(state->repeats);
    grantor_calls_destroy(state->calls);
    grantor_peers_destroy(state->peers);
    grantor_page_destroy(state->page);
    free(state->in.data);
    free(state->out.data);
    free(state->frame);
}

void grantor_state_end_round(struct grantor_state *state)
{
    grantor_flights_submit(state);
    for (struct grantor_session *session = state->sessions; session != NULL && state->read_bytes > 0;
         session = session->next) {
        if (session->chunks != NULL && !session->failed) {
            grantor_session_pump(session);
        }
    }
}
