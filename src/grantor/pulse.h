/* The service manager hears from the network thread itself that it runs: a process whose thread hangs is restarted, and
 * its clients find it again, instead of waiting for one that only looks alive. */
#ifndef GRANTOR_PULSE_H
#define GRANTOR_PULSE_H

#include "grantor/state.h"

struct grantor_pulse;

/* Twice as often as the manager asks for; *pulse is NULL when it does not. From another thread than the loop's, as is
 * stop. Errors: ASTER_ERR_NOMEM. */
aster_status grantor_pulse_start(struct grantor_state *state, struct grantor_pulse **pulse, struct aster_error *error);
void grantor_pulse_stop(struct grantor_pulse *pulse); /* NULL is legal */

#endif
