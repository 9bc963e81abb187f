/* The registrar without its thread and its file: an order is carried out at once, and answered in the next round. */
#include <stdlib.h>

#include "grantor/registrar.h"
#include "grantor/session.h"
#include "grantor_session/world.h"

static void run_back(struct aster_task *task)
{
    grantor_session_ordered((struct grantor_order *)(void *)task);
}

static void expel(const struct grantor_state *state)
{
    for (struct grantor_session *session = state->sessions; session != NULL; session = session->next) {
        if (!session->failed && !grantor_admission_knows(state->admission, aster_link_identity(session->link))) {
            grantor_session_end(session, "not admitted");
        }
        grantor_session_recheck(session);
    }
}

void grantor_registrar_submit(struct grantor_registrar *registrar, struct grantor_order *order)
{
    static unsigned char memory[ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_scratch scratch = {memory, sizeof memory, 0};
    struct grantor_overlay *overlay = NULL;
    struct aster_call call;
    uint64_t id;
    (void)registrar;
    if (aster_call_decode(order->request, order->actor, &limits, &scratch, &call, &id, &order->error) != ASTER_OK) {
        abort(); /* the session has understood it */
    }
    order->status = grantor_admission_change(order->state->admission, &call, &overlay, &order->error);
    if (overlay != NULL) {
        order->changed = true;
        grantor_admission_replace(order->state->admission, NULL, overlay);
        expel(order->state);
        world_nodes_changed();
    }
    order->task.run = run_back;
    aster_loop_post(order->state->loop, &order->task);
}
