/* The director's end of one worker process: a real program with a pipe in each direction. */
#ifndef DEMO_PROCESS_H
#define DEMO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "aster/status.h"
#include "cli/demo/message.h"

struct demo_process {
    pid_t pid;   /* 0 = not running */
    int to_fd;   /* commands */
    int from_fd; /* messages; non-blocking */
    bool stopped;
    bool ended;
    int wait_status; /* of waitpid(), once ended */
    char buffer[2 * DEMO_MESSAGE_LINE_MAX];
    size_t buffered;
};

#define DEMO_PROCESS_INIT                                                                                              \
    {                                                                                                                  \
        0, -1, -1, false, false, 0, {0}, 0                                                                             \
    }

/* Start this very program again with `arguments` (NULL-terminated, from argv[1] on). The child dies with the calling
 * thread. Errors: ASTER_ERR_IO. */
aster_status aster_demo_process_start(struct demo_process *process, char *const arguments[], struct aster_error *error);

/* Write one command line. Errors: ASTER_ERR_IO (the worker is gone). */
aster_status aster_demo_process_tell(struct demo_process *process, const char *command, struct aster_error *error);

enum demo_listen { DEMO_LISTEN_MESSAGE, DEMO_LISTEN_NOTHING, DEMO_LISTEN_CLOSED };

/* Take the next message if one has arrived. Does not block. A line that is no message counts as closed. */
enum demo_listen aster_demo_process_listen(struct demo_process *process, struct demo_message *message);

/* SIGSTOP, and block until the kernel reports the process stopped. Errors: ASTER_ERR_IO (it ended instead). */
aster_status aster_demo_process_stop(struct demo_process *process, struct aster_error *error);
aster_status aster_demo_process_continue(struct demo_process *process, struct aster_error *error);

/* Has it ended? Reaps it, fills wait_status. Does not block. */
bool aster_demo_process_reap(struct demo_process *process);

/* Exit status, or 128 + signal. -1 while it has not ended. */
int aster_demo_process_exit_code(const struct demo_process *process);

/* Kill it if it still runs, stopped or not, reap it and close the pipes. Legal at any time, more than once. */
void aster_demo_process_fini(struct demo_process *process);

#endif
