/* A small process that kills the command's group when `aster run` dies, or is stopped or starved past the self-limit.
 * It shares one page with its parent; docs/adr/0007 says why it exists. */
#ifndef RUN_WATCHDOG_H
#define RUN_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "aster/status.h"

struct aster_watch_page {
    _Atomic(int64_t) limit_ns; /* CLOCK_BOOTTIME; kill the group then; INT64_MAX = never */
    _Atomic(int32_t) group;    /* the command's process group; 0 = none (yet, or any more) */
};

struct aster_watchdog {
    pid_t pid;
    int alive_fd; /* the parent's end of a pipe: closed by its death */
    struct aster_watch_page *page;
};

/* Start it. Everything but the group and the limit is in place before it answers. Errors: ASTER_ERR_IO. */
aster_status aster_watchdog_start(struct aster_watchdog *watchdog, int64_t limit_ns, struct aster_error *error);

/* From now on this group is killed when need be. */
void aster_watchdog_guard(struct aster_watchdog *watchdog, pid_t group);

/* The lease was renewed, or must end earlier. */
void aster_watchdog_limit(struct aster_watchdog *watchdog, int64_t limit_ns);

/* Before the group's leader is reaped: its number may be given to others afterwards. Idempotent. */
void aster_watchdog_stop(struct aster_watchdog *watchdog);

#endif
