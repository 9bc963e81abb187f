/* The asterd that the demo starts. */
#ifndef DEMO_GRANTOR_ASTERD_H
#define DEMO_GRANTOR_ASTERD_H

#include <sys/types.h>

#include "platform/address.h"

/* Start asterd with a configuration, its log in a file, and wait until it serves; gives its QUIC address. The program
 * is ASTER_ASTERD, or found beside this one. It dies with the calling thread. Errors: ASTER_ERR_INVALID (not found),
 * ASTER_ERR_IO with the last line of the log. *pid is set as soon as there is a process to be ended. */
aster_status aster_demo_asterd_start(const char *config, const char *log, pid_t *pid, struct aster_address *address,
                                     struct aster_error *error);

/* SIGTERM, and wait; its exit status, or -1 when it had to be killed. */
int aster_demo_asterd_end(pid_t pid);

#endif
