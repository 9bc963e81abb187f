#include "cli/run/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define WATCH_ALIVE 0 /* its descriptors */
#define WATCH_TIMER 1

/* The watchdog is forked from a process with threads: from here to there only async-signal-safe calls. */

static int64_t boottime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void arm(int timer, int64_t limit_ns)
{
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (limit_ns != INT64_MAX) {
        limit_ns = limit_ns > 0 ? limit_ns : 1;
        when.it_value.tv_sec = (time_t)(limit_ns / INT64_C(1000000000));
        when.it_value.tv_nsec = (long)(limit_ns % INT64_C(1000000000));
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void kill_group(const struct aster_watch_page *page)
{
    pid_t group = atomic_load(&page->group);
    if (group > 0) {
        kill(-group, SIGKILL);
    }
}

/* Keep the pipe, the timer and nothing else: no terminal, no database, no one's pipe that waits for an end of file. */
static bool close_others(int alive, int timer)
{
    alive = fcntl(alive, F_DUPFD, 3); /* away from 0 and 1, should those have been closed */
    timer = fcntl(timer, F_DUPFD, 3);
    if (dup2(alive, WATCH_ALIVE) < 0 || dup2(timer, WATCH_TIMER) < 0) {
        return false;
    }
    if (syscall(SYS_close_range, 2U, ~0U, 0U) != 0) {
        for (int fd = 2; fd < 65536; fd++) {
            close(fd);
        }
    }
    return true;
}

static void watch(struct aster_watch_page *page)
{
    char nudges[64];
    for (;;) {
        arm(WATCH_TIMER, atomic_load(&page->limit_ns));
        struct pollfd fds[] = {{WATCH_ALIVE, POLLIN, 0}, {WATCH_TIMER, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[0].revents != 0 && read(WATCH_ALIVE, nudges, sizeof nudges) <= 0) { /* the parent is gone */
            kill_group(page);
            return;
        }
        if (boottime_ns() >= atomic_load(&page->limit_ns)) {
            kill_group(page);
            atomic_store(&page->limit_ns, INT64_MAX);
        }
    }
}

static _Noreturn void watchdog_main(struct aster_watch_page *page, int alive, int timer)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid(); /* out of reach of the terminal's signals and of kills of the parent's group */
    prctl(PR_SET_NAME, "aster-watchdog");
    if (close_others(alive, timer)) {
        watch(page);
    }
    _exit(0);
}

aster_status aster_watchdog_start(struct aster_watchdog *watchdog, int64_t limit_ns, struct aster_error *error)
{
    int ends[2] = {-1, -1};
    int timer = -1;
    struct aster_watch_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return aster_error_set_os(error, ASTER_ERR_NOMEM, errno, "cannot map a page for the watchdog");
    }
    atomic_store(&page->limit_ns, limit_ns);
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        pid = timer >= 0 ? fork() : -1;
    }
    int code = errno;
    if (pid == 0) {
        close(ends[1]);
        watchdog_main(page, ends[0], timer);
    }
    if (timer >= 0) {
        close(timer);
    }
    if (ends[0] >= 0) {
        close(ends[0]);
    }
    if (pid < 0) {
        if (ends[1] >= 0) {
            close(ends[1]);
        }
        munmap(page, sizeof *page);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start the watchdog");
    }
    *watchdog = (struct aster_watchdog){pid, ends[1], page};
    return ASTER_OK;
}

void aster_watchdog_guard(struct aster_watchdog *watchdog, pid_t group)
{
    atomic_store(&watchdog->page->group, (int32_t)group);
}

void aster_watchdog_limit(struct aster_watchdog *watchdog, int64_t limit_ns)
{
    int64_t before_ns = atomic_exchange(&watchdog->page->limit_ns, limit_ns);
    if (limit_ns < before_ns && write(watchdog->alive_fd, "", 1) != 1) {
        return; /* its pipe is full of nudges already, or it is gone; the parent still acts itself */
    }
}

void aster_watchdog_stop(struct aster_watchdog *watchdog)
{
    if (watchdog->pid <= 0) {
        return;
    }
    atomic_store(&watchdog->page->group, 0);
    kill(watchdog->pid, SIGKILL); /* also when it is stopped */
    while (waitpid(watchdog->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(watchdog->alive_fd);
    munmap(watchdog->page, sizeof *watchdog->page);
    watchdog->pid = 0;
}
