#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/exit.h"

extern char **environ;

#define VARIABLES 5

struct environment {
    char **entries; /* environ without ours, then ours, NULL */
    char text[VARIABLES][ASTER_FENCE_TEXT_MAX + 4200];
};

static const char *const names[VARIABLES] = {"ASTER_RESOURCE", "ASTER_EPOCH", "ASTER_HOLDER", "ASTER_FENCE",
                                             "ASTER_STORE"};

static bool is_ours(const char *entry)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(entry, names[i], length) == 0 && entry[length] == '=') {
            return true;
        }
    }
    return false;
}

/* Made before the fork: the child may not allocate. */
static aster_status environment_make(struct environment *environment, const struct aster_run *run,
                                     const struct aster_fence *fence, struct aster_error *error)
{
    char fence_text[ASTER_FENCE_TEXT_MAX];
    size_t count = 0;
    size_t used = 0;
    aster_status status = aster_fence_format(fence, fence_text, sizeof fence_text, error);
    if (status != ASTER_OK) {
        return status;
    }
    while (environ[count] != NULL) {
        count++;
    }
    environment->entries = malloc((count + VARIABLES + 1) * sizeof *environment->entries);
    if (environment->entries == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the command's environment");
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_ours(environ[i])) {
            environment->entries[used++] = environ[i];
        }
    }
    size_t size = sizeof environment->text[0];
    snprintf(environment->text[0], size, "%s=%.*s", names[0], (int)fence->resource.size,
             (const char *)fence->resource.data);
    snprintf(environment->text[1], size, "%s=%" PRId64, names[1], fence->epoch);
    snprintf(environment->text[2], size, "%s=%.*s", names[2], (int)fence->holder.size,
             (const char *)fence->holder.data);
    snprintf(environment->text[3], size, "%s=%s", names[3], fence_text);
    snprintf(environment->text[4], size, "%s=%s", names[4], run->store);
    for (size_t i = 0; i < VARIABLES; i++) {
        environment->entries[used++] = environment->text[i];
    }
    environment->entries[used] = NULL;
    return ASTER_OK;
}

struct start {
    const struct aster_run *run;
    char **environment;
    pid_t parent;
    int go[2];     /* parent -> child: start; an end of file means the parent is gone */
    int answer[2]; /* child -> parent: errno of a failed exec; an end of file means it runs */
};

/* Between fork and exec, in a copy of a process with threads. */
static _Noreturn void child_main(const struct start *start)
{
    char byte;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(start->go[1]);
    close(start->answer[0]);
    if (getppid() != start->parent || read(start->go[0], &byte, 1) != 1) {
        _exit(EXIT_FAILURE);
    }
    sigprocmask(SIG_SETMASK, &start->run->mask, NULL);
    execvpe(start->run->command[0], start->run->command, start->environment);
    int code = errno;
    if (write(start->answer[1], &code, sizeof code) != (ssize_t)sizeof code) {
        _exit(127);
    }
    _exit(126);
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            close(pair[i]);
        }
        pair[i] = -1;
    }
}

/* The terminal of a command in the foreground follows it; in the background, or without one, there is none to give. */
static int find_terminal(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() ? STDIN_FILENO : -1;
}

void aster_child_give_terminal(const struct aster_child *child)
{
    if (child->terminal >= 0 && tcgetpgrp(child->terminal) == getpgrp()) { /* not after the shell's `bg` */
        tcsetpgrp(child->terminal, child->pid);
    }
}

void aster_child_take_terminal(const struct aster_child *child)
{
    if (child->terminal >= 0) {
        tcsetpgrp(child->terminal, getpgrp());
    }
}

/* Let it go only while the fence is supplied; then learn whether exec worked. */
static enum aster_child_start let_go(struct aster_child *child, struct start *start, struct aster_watchdog *watchdog,
                                     int *exec_errno)
{
    setpgid(child->pid, child->pid); /* both sides do it, so that it is done whoever runs first */
    aster_watchdog_guard(watchdog, child->pid);
    aster_child_give_terminal(child);
    close(start->answer[1]);
    start->answer[1] = -1;
    bool late = aster_lease_fence(start->run->lease) == NULL;
    if (!late && write(start->go[1], "", 1) != 1) {
        late = true;
    }
    close_pair(start->go);
    int code = 0;
    ssize_t got;
    do {
        got = read(start->answer[0], &code, sizeof code);
    } while (got < 0 && errno == EINTR);
    if (late || got == (ssize_t)sizeof code) {
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        *exec_errno = code;
        return late ? ASTER_CHILD_LATE : ASTER_CHILD_FAILED;
    }
    return ASTER_CHILD_STARTED;
}

static enum aster_child_start fork_child(struct aster_child *child, struct start *start,
                                         struct aster_watchdog *watchdog, int *exec_errno, struct aster_error *error)
{
    enum aster_child_start result = ASTER_CHILD_FAILED;
    *exec_errno = 0;
    if (pipe2(start->go, O_CLOEXEC) != 0 || pipe2(start->answer, O_CLOEXEC) != 0 || (child->pid = fork()) < 0) {
        aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot start a process for the command");
    } else if (child->pid == 0) {
        close(watchdog->alive_fd); /* or the command's start would look like life of the parent */
        child_main(start);
    } else {
        result = let_go(child, start, watchdog, exec_errno);
    }
    close_pair(start->go);
    close_pair(start->answer);
    return result;
}

enum aster_child_start aster_child_start(struct aster_child *child, const struct aster_run *run,
                                         struct aster_watchdog *watchdog, int *exec_errno, struct aster_error *error)
{
    const struct aster_fence *fence = aster_lease_fence(run->lease);
    enum aster_child_start result = ASTER_CHILD_FAILED;
    *child = (struct aster_child){.pid = -1, .terminal = find_terminal()};
    *exec_errno = 0;
    if (fence == NULL) {
        return ASTER_CHILD_LATE;
    }
    struct environment *environment = calloc(1, sizeof *environment);
    if (environment == NULL) {
        aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for the command's environment");
    } else if (environment_make(environment, run, fence, error) == ASTER_OK) {
        struct start start = {run, environment->entries, getpid(), {-1, -1}, {-1, -1}};
        result = fork_child(child, &start, watchdog, exec_errno, error);
        free(environment->entries);
    }
    free(environment);
    if (result != ASTER_CHILD_STARTED) {
        aster_child_take_terminal(child);
    }
    return result;
}

void aster_child_signal(const struct aster_child *child, int number)
{
    kill(-child->pid, number);
}

void aster_child_look(struct aster_child *child)
{
    siginfo_t info = {0};
    if (child->ended) {
        return;
    }
    int code = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (code != 0 && errno == ECHILD) { /* somebody else has its status: it is over, whatever it was */
        child->ended = true;
        child->stopped = false;
        child->wait_status = ASTER_EXIT_INTERNAL;
        return;
    }
    if (code == 0 && info.si_pid == child->pid) {
        child->ended = true;
        child->stopped = false;
        child->wait_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        return;
    }
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid == child->pid) {
        child->stopped = info.si_code == CLD_STOPPED;
    }
}

void aster_child_reap(struct aster_child *child)
{
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
