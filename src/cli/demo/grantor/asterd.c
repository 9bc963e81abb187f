#include "cli/demo/grantor/asterd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"

#define LOOK_MS 10
#define START_LOOKS 1500 /* 15 s: generous, for busy machines */
#define END_LOOKS 1000
#define LOG_MAX 65536

static void nap(void)
{
    nanosleep(&(struct timespec){0, aster_ms_to_ns(LOOK_MS)}, NULL);
}

/* Installed beside us or in sbin; in the build tree in the folder of its house. */
static aster_status find_program(char path[PATH_MAX], struct aster_error *error)
{
    static const char *const places[] = {"asterd", "../sbin/asterd", "../grantor/asterd"};
    char own[PATH_MAX];
    const char *named = getenv("ASTER_ASTERD");
    if (named != NULL && named[0] != '\0') {
        snprintf(path, PATH_MAX, "%s", named);
        return ASTER_OK;
    }
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    for (size_t i = 0; slash != NULL && i < sizeof places / sizeof places[0]; i++) {
        int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - own), own, places[i]);
        if (written < PATH_MAX && access(path, X_OK) == 0) {
            return ASTER_OK;
        }
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "there is no asterd beside this program: install it, or name it with ASTER_ASTERD");
}

/* Between fork() and exec(): only async-signal-safe calls. */
static _Noreturn void become_asterd(pid_t parent, int log_fd, const char *program, const char *config)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1); /* the demo died before the line above */
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* the terminal's interrupt is for the demo, which then ends us */
    if (dup2(log_fd, STDERR_FILENO) >= 0) {
        execl(program, program, "--config", config, (char *)NULL);
    }
    _exit(127);
}

static size_t read_log(const char *path, char text[LOG_MAX])
{
    FILE *file = fopen(path, "r");
    size_t size = file != NULL ? fread(text, 1, LOG_MAX - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    text[size] = '\0';
    return size;
}

static const char *last_line(char *text)
{
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == '\n') {
        text[--size] = '\0';
    }
    char *newline = strrchr(text, '\n');
    return newline != NULL ? newline + 1 : text;
}

static aster_status read_address(const char *log, struct aster_address *address, struct aster_error *error)
{
    static const char before[] = "transport=quic address=";
    char text[ASTER_ADDRESS_TEXT_MAX];
    size_t count = 0;
    const char *at = strstr(log, before);
    at = at != NULL ? at + sizeof before - 1 : "";
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, " \n"), at);
    return aster_address_resolve(text, false, address, 1, &count, error);
}

static aster_status await_ready(pid_t *pid, const char *log, struct aster_address *address, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    bool ready = false;
    char *text = malloc(LOG_MAX);
    if (text == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the log of asterd");
    }
    for (int i = 0; i < START_LOOKS && !ready && *pid > 0; i++) {
        nap();
        if (waitpid(*pid, NULL, WNOHANG) == *pid) {
            *pid = 0;
        }
        read_log(log, text);
        ready = strstr(text, "event=ready") != NULL;
    }
    if (ready && *pid > 0) {
        status = read_address(text, address, error);
    } else {
        status = aster_error_set(error, ASTER_ERR_IO, "asterd did not start: %.200s", last_line(text));
    }
    free(text);
    return status;
}

aster_status aster_demo_asterd_start(const char *config, const char *log, pid_t *pid, struct aster_address *address,
                                     struct aster_error *error)
{
    char program[PATH_MAX];
    aster_status status = find_program(program, error);
    if (status != ASTER_OK) {
        return status;
    }
    int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (log_fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write the log of asterd");
    }
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        become_asterd(parent, log_fd, program, config);
    }
    int code = errno;
    close(log_fd);
    if (child < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start asterd");
    }
    *pid = child;
    return await_ready(pid, log, address, error);
}

int aster_demo_asterd_end(pid_t pid)
{
    int status = 0;
    kill(pid, SIGTERM);
    for (int i = 0; i < END_LOOKS; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        nap();
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return -1;
}
