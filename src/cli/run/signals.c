#include "cli/run/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

aster_status aster_run_signals_take(sigset_t *old, int *fd, struct aster_error *error)
{
    /* TTOU and TTIN: handing the terminal to the command must not stop us. */
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH,
                                  SIGCONT, SIGTSTP, SIGCHLD, SIGTTOU, SIGTTIN, SIGPIPE};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&set, numbers[i]);
    }
    /* Who started us may have ignored SIGCHLD, which exec() keeps: the kernel would take the command's status away. */
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (sigaction(SIGCHLD, &by_default, NULL) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot listen for the end of the command");
    }
    int code = pthread_sigmask(SIG_BLOCK, &set, old);
    if (code != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot block signals");
    }
    sigdelset(&set, SIGTTOU);
    sigdelset(&set, SIGTTIN);
    sigdelset(&set, SIGPIPE);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make a descriptor for signals");
    }
    return ASTER_OK;
}

int aster_run_signals_next(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

bool aster_run_signal_ends(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}
