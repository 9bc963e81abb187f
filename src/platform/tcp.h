/* Non-blocking TCP sockets. */
#ifndef PLATFORM_TCP_H
#define PLATFORM_TCP_H

#include "platform/address.h"

/* Listen; `bound` gets the address with its port. Errors: ASTER_ERR_IO. */
aster_status aster_tcp_listen(const struct aster_address *local, int *fd, struct aster_address *bound,
                              struct aster_error *error);
/* Begin to connect: writable when it has succeeded or failed. Errors: ASTER_ERR_IO, ASTER_ERR_UNREACHABLE. */
aster_status aster_tcp_connect(const struct aster_address *remote, int *fd, struct aster_error *error);
/* The next connection; -EAGAIN when none waits, or another negative errno. */
int aster_tcp_accept(int fd, struct aster_address *remote);
/* The errno of a connect() that has finished; 0 = it succeeded. */
int aster_tcp_connected(int fd);
/* Small packets at once, and the kernel notices a dead peer: probes after `keep_alive_ms` of silence, an error when
 * nothing was acknowledged for `idle_timeout_ms`. */
void aster_tcp_tune(int fd, int64_t keep_alive_ms, int64_t idle_timeout_ms);

#endif
