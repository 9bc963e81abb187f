/* SIGINT, SIGTERM and SIGHUP while worker processes exist: noted, so that the director can end them first. */
#ifndef DEMO_SIGNALS_H
#define DEMO_SIGNALS_H

#include <poll.h>

/* Take the signals from now on; they are delivered only inside aster_demo_signals_poll(). SIGPIPE is ignored: a worker
 * that died is noticed by its exit. One thread, before any other is created. */
void aster_demo_signals_take(void);

/* Give them back as they were. */
void aster_demo_signals_restore(void);

/* poll() that a signal ends early. */
void aster_demo_signals_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* The first signal that arrived since take(), or 0. */
int aster_demo_signal(void);

#endif
