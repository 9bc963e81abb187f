#include "cli/demo/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* Between fork() and exec(): only async-signal-safe calls. */
static _Noreturn void become_worker(pid_t parent, int in, int out, char *const arguments[])
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* the director died before the line above */
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGINT, SIG_IGN); /* the director ends its workers, whatever the terminal sends to the group */
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        execv("/proc/self/exe", arguments);
    }
    _exit(127);
}

aster_status aster_demo_process_start(struct demo_process *process, char *const arguments[], struct aster_error *error)
{
    int down[2];
    int up[2];
    if (pipe2(down, O_CLOEXEC) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make a pipe");
    }
    if (pipe2(up, O_CLOEXEC) != 0) {
        int code = errno;
        close_pair(down);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot make a pipe");
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become_worker(parent, down[0], up[1], arguments);
    }
    if (pid < 0) {
        int code = errno;
        close_pair(down);
        close_pair(up);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start a worker process");
    }
    close(down[0]);
    close(up[1]);
    fcntl(up[0], F_SETFL, O_NONBLOCK);
    *process = (struct demo_process){.pid = pid, .to_fd = down[1], .from_fd = up[0]};
    return ASTER_OK;
}

aster_status aster_demo_process_tell(struct demo_process *process, const char *command, struct aster_error *error)
{
    size_t length = strlen(command);
    ssize_t written;
    do {
        written = write(process->to_fd, command, length); /* far below PIPE_BUF: whole or not at all */
    } while (written < 0 && errno == EINTR);
    if (written != (ssize_t)length) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "a worker process does not take commands any more");
    }
    return ASTER_OK;
}

static bool take_line(struct demo_process *process, struct demo_message *message, bool *valid)
{
    char *newline = memchr(process->buffer, '\n', process->buffered);
    if (newline == NULL) {
        return false;
    }
    *newline = '\0';
    *valid = aster_demo_message_parse(process->buffer, message);
    size_t used = (size_t)(newline - process->buffer) + 1;
    process->buffered -= used;
    memmove(process->buffer, process->buffer + used, process->buffered);
    return true;
}

enum demo_listen aster_demo_process_listen(struct demo_process *process, struct demo_message *message)
{
    bool valid = false;
    for (;;) {
        if (take_line(process, message, &valid)) {
            return valid ? DEMO_LISTEN_MESSAGE : DEMO_LISTEN_CLOSED;
        }
        size_t room = sizeof process->buffer - process->buffered;
        ssize_t got = room > 0 ? read(process->from_fd, process->buffer + process->buffered, room) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return DEMO_LISTEN_NOTHING;
        }
        if (got <= 0) {
            return DEMO_LISTEN_CLOSED;
        }
        process->buffered += (size_t)got;
    }
}

aster_status aster_demo_process_stop(struct demo_process *process, struct aster_error *error)
{
    int status = 0;
    pid_t waited = -1;
    if (process->ended || kill(process->pid, SIGSTOP) != 0) {
        return aster_error_set(error, ASTER_ERR_IO, "a worker process ended before it could be stopped");
    }
    do {
        waited = waitpid(process->pid, &status, WUNTRACED);
    } while (waited < 0 && errno == EINTR);
    if (waited == process->pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) {
        process->stopped = true;
        return ASTER_OK;
    }
    if (waited == process->pid) {
        process->ended = true;
        process->wait_status = status;
    }
    return aster_error_set(error, ASTER_ERR_IO, "a worker process ended instead of stopping");
}

aster_status aster_demo_process_continue(struct demo_process *process, struct aster_error *error)
{
    if (!process->stopped || kill(process->pid, SIGCONT) != 0) {
        return aster_error_set(error, ASTER_ERR_IO, "a worker process cannot be continued");
    }
    process->stopped = false;
    return ASTER_OK;
}

bool aster_demo_process_reap(struct demo_process *process)
{
    int status = 0;
    if (!process->ended && process->pid > 0 && waitpid(process->pid, &status, WNOHANG) == process->pid) {
        process->ended = true;
        process->wait_status = status;
    }
    return process->ended;
}

int aster_demo_process_exit_code(const struct demo_process *process)
{
    if (!process->ended) {
        return -1;
    }
    int status = process->wait_status;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void aster_demo_process_fini(struct demo_process *process)
{
    if (process->pid > 0 && !aster_demo_process_reap(process)) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, &process->wait_status, 0) < 0 && errno == EINTR) {
        }
        process->ended = true;
    }
    if (process->to_fd >= 0) {
        close(process->to_fd);
        close(process->from_fd);
    }
    process->to_fd = -1;
    process->from_fd = -1;
}
