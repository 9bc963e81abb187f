/* `aster run`: hold a lease while a command runs, and end the command before anyone else can be granted. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "aster/lease.h"
#include "aster/plan.h"

enum aster_on_lost {
    ASTER_ON_LOST_TERMINATE, /* TERM, then KILL at the self-limit */
    ASTER_ON_LOST_KILL,      /* KILL only */
    ASTER_ON_LOST_CONTINUE   /* leave the command alone; the exit status still tells */
};

struct aster_run_options {
    int64_t wait_ms;
    int64_t ttl_ms;
    int64_t renew_ms;  /* or ASTER_LEASE_DEFAULT */
    int64_t margin_ms; /* or ASTER_LEASE_DEFAULT */
    int64_t grace_ms;  /* between TERM and KILL; < 0 = a quarter of the usable time, 5 s at most */
    int on_lost;
    const char *holder;
    bool own;
    bool verbose;
};

/* One run, from the command line to the release. */
struct aster_run {
    const struct aster_run_options *options;
    bool json;
    struct aster_renew_plan plan;
    int64_t grace_ms;
    const char *store; /* as the child names it */
    struct aster_bytes resource;
    struct aster_bytes holder;
    char **command; /* argv of the child */
    struct aster_lease *lease;
    int status_fd; /* eventfd: the lease's status changed */
    int signal_fd;
    sigset_t mask; /* what the command starts with */
};

/* One line on stderr: say() always, tell() with --verbose or --json. With --json it is an object, of which `event` is
 * what programs go by. */
void aster_run_say(const struct aster_run *run, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void aster_run_tell(const struct aster_run *run, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The lease is held: start the command, see it through, release. Returns the exit status. */
int aster_run_supervise(struct aster_run *run);

#endif
