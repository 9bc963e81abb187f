/* The command: a process group of its own that dies with its parent. */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/run.h"
#include "cli/run/watchdog.h"

struct aster_child {
    pid_t pid;    /* also its group */
    int terminal; /* descriptor of the terminal that was handed over, or -1 */
    bool ended;   /* `wait_status` is set; not reaped yet */
    bool stopped;
    int wait_status; /* exit status as a shell says it: the code, or 128 + signal */
};

enum aster_child_start {
    ASTER_CHILD_STARTED,
    ASTER_CHILD_LATE,  /* the fence was gone before the command could start */
    ASTER_CHILD_FAILED /* *exec_errno says why it cannot be executed; 0 = the system refused a process */
};

/* Start the command with the environment of the run, only while the fence is supplied. */
enum aster_child_start aster_child_start(struct aster_child *child, const struct aster_run *run,
                                         struct aster_watchdog *watchdog, int *exec_errno, struct aster_error *error);

/* Send a signal to the whole group. */
void aster_child_signal(const struct aster_child *child, int number);

/* Look whether it ended, stopped or went on; it stays a zombie, so that its group's number stays taken. */
void aster_child_look(struct aster_child *child);

/* Take the terminal back, or hand it over again. */
void aster_child_take_terminal(const struct aster_child *child);
void aster_child_give_terminal(const struct aster_child *child);

/* Reap it, once it ended. */
void aster_child_reap(struct aster_child *child);

#endif
