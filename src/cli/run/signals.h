/* The signals of `aster run`: all blocked in every thread, read from a descriptor by the supervisor. */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "aster/status.h"

/* Block them, before any thread is made, and open the descriptor. *old is what a command should start with. */
aster_status aster_run_signals_take(sigset_t *old, int *fd, struct aster_error *error);

/* The next signal that is pending, or 0. */
int aster_run_signals_next(int fd);

/* Does this one end a wait for the lease? */
bool aster_run_signal_ends(int number);

#endif
