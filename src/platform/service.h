/* The service manager's notification protocol, as sd_notify(3) describes it: datagrams to the socket in NOTIFY_SOCKET.
 * Without that variable nothing happens. Any thread. */
#ifndef PLATFORM_SERVICE_H
#define PLATFORM_SERVICE_H

#include <stdint.h>

/* One datagram of "NAME=value" lines. Never blocks: a manager that does not read is not waited for. */
void aster_service_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How long the manager waits for WATCHDOG=1 before it takes the process for hung; 0 = it does not wait. */
int64_t aster_service_watchdog_ns(void);

#endif
