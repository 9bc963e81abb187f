/* The life of the command under the lease: renewals are watched, the end is timed, signals are passed on. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "aster/sys/clock.h"
#include "base/checked.h"
#include "base/error.h"
#include "cli/exit.h"
#include "cli/run/child.h"
#include "cli/run/processes.h"
#include "cli/run/run.h"
#include "cli/run/signals.h"
#include "cli/run/watchdog.h"

#define LOOKS_PER_LEASE 10 /* how often the limit is handed to the watchdog */
#define GROUP_LOOK_NS (20 * ASTER_NS_PER_MS)
#define RELEASE_MAX_MS 10000

enum phase {
    PHASE_RUNNING,
    PHASE_TERMINATING, /* TERM was sent; KILL follows at kill_at_ns */
    PHASE_KILLED,
    PHASE_CONTINUING /* lost, and the user wants the command to go on */
};

struct supervisor {
    struct aster_run *run;
    struct aster_child child;
    struct aster_watchdog watchdog;
    int timer_fd;
    enum phase phase;
    bool lost;
    int64_t limit_ns; /* the last one seen while the lease was held */
    int64_t kill_at_ns;
    int64_t errors_told;
};

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

static const char *why_ended(const struct aster_lease_report *report)
{
    switch (report->reason) {
    case ASTER_LEASE_REASON_DENIED:
        return "somebody else was granted";
    case ASTER_LEASE_REASON_EXPIRED:
        return "the store saw its ttl pass";
    case ASTER_LEASE_REASON_REVOKED:
        return "it was released or revoked";
    case ASTER_LEASE_REASON_CLOCK_JUMP:
        return "this process was stopped, suspended or starved past the self-limit";
    case ASTER_LEASE_REASON_CLOSED:
        return "the store was closed";
    default:
        return "no renewal succeeded in time";
    }
}

static void say_lost(struct supervisor *self, const struct aster_lease_report *report, const char *what)
{
    bool detail = report->last_error.message[0] != '\0' && report->status != ASTER_LEASE_FENCED;
    aster_run_say(self->run, "lost", "lease lost (epoch %" PRId64 "): %s%s%s; %s", report->epoch, why_ended(report),
                  detail ? ": " : "", detail ? report->last_error.message : "", what);
    self->lost = true;
}

static void kill_now(struct supervisor *self)
{
    aster_run_tell(self->run, "kill", "KILL sent");
    aster_child_signal(&self->child, SIGKILL);
    self->phase = PHASE_KILLED;
}

/* TERM to everyone, and CONT so that those who are stopped hear it. Nobody is granted while renewals still succeed, so
 * the handle goes on renewing, but an end that was announced is not taken back. */
static void end_command(struct supervisor *self, const struct aster_lease_report *report, int64_t now)
{
    if (self->run->options->on_lost == ASTER_ON_LOST_CONTINUE) {
        say_lost(self, report, "the command goes on, as --on-lost continue says; its fenced writes will be refused");
        self->phase = PHASE_CONTINUING;
        return;
    }
    aster_lease_quiesce(self->run->lease);
    int64_t grace_ns = aster_ms_to_ns(self->run->grace_ms);
    bool fenced = report->status != ASTER_LEASE_HELD;
    self->kill_at_ns = self->limit_ns;
    if (fenced && now + grace_ns < self->kill_at_ns) {
        self->kill_at_ns = now + grace_ns;
    }
    aster_watchdog_limit(&self->watchdog, self->kill_at_ns);
    if (now >= self->kill_at_ns || self->run->options->on_lost == ASTER_ON_LOST_KILL) {
        say_lost(self, report, "killing the command");
        kill_now(self);
        return;
    }
    aster_child_signal(&self->child, SIGTERM);
    aster_child_signal(&self->child, SIGCONT);
    self->phase = PHASE_TERMINATING;
    say_lost(self, report, "ending the command");
    aster_run_tell(self->run, "term", "TERM sent; KILL follows in %" PRId64 " ms",
                   (self->kill_at_ns - now) / ASTER_NS_PER_MS);
}

/* When the command must hear of the end if no renewal succeeds. */
static int64_t end_at_ns(const struct supervisor *self)
{
    bool terminate = self->run->options->on_lost == ASTER_ON_LOST_TERMINATE;
    return self->limit_ns - (terminate ? aster_ms_to_ns(self->run->grace_ms) : 0);
}

static void look_at_lease(struct supervisor *self, int64_t now)
{
    struct aster_lease_report report;
    aster_lease_report_get(self->run->lease, &report);
    if (report.renew_errors > self->errors_told) {
        self->errors_told = report.renew_errors;
        aster_run_tell(self->run, "renewal-failed", "a renewal failed (%" PRId64 " so far): %s", report.renew_errors,
                       report.last_error.message);
    }
    if (report.status == ASTER_LEASE_HELD) {
        self->limit_ns = report.limit_ns;
        bool forever = self->run->options->on_lost == ASTER_ON_LOST_CONTINUE;
        aster_watchdog_limit(&self->watchdog, forever ? INT64_MAX : report.limit_ns);
    }
    if (report.status != ASTER_LEASE_HELD || now >= end_at_ns(self)) {
        end_command(self, &report, now);
    }
}

/* Did everything end that had to? Also decides about KILL. */
static bool look_at_command(struct supervisor *self, int64_t now)
{
    aster_child_look(&self->child);
    if (self->phase == PHASE_TERMINATING) {
        if (self->child.ended && !aster_processes_in_group(self->child.pid)) {
            return true;
        }
        if (now >= self->kill_at_ns) {
            kill_now(self);
        }
        return false;
    }
    return self->child.ended;
}

static int64_t wake_at_ns(const struct supervisor *self, int64_t now)
{
    int64_t usable_ns = aster_renew_plan_limit_ns(&self->run->plan, 0);
    int64_t look_ns = now + usable_ns / LOOKS_PER_LEASE;
    switch (self->phase) {
    case PHASE_RUNNING:
        return look_ns < end_at_ns(self) ? look_ns : end_at_ns(self);
    case PHASE_TERMINATING:
        look_ns = now + GROUP_LOOK_NS;
        return self->child.ended && look_ns < self->kill_at_ns ? look_ns : self->kill_at_ns;
    default:
        return INT64_MAX; /* SIGCHLD comes */
    }
}

/* The shell that started us wants its terminal back when its job stops. Stopped, we cannot renew. */
static void stop_with_command(struct supervisor *self)
{
    aster_child_take_terminal(&self->child);
    aster_run_say(self->run, "stopped",
                  "stopped with the command: the lease is not renewed now, and the command is killed at its limit");
    raise(SIGSTOP);
    aster_child_give_terminal(&self->child);
    aster_child_signal(&self->child, SIGCONT);
    self->child.stopped = false;
}

static void pass_signals(struct supervisor *self)
{
    for (int number; (number = aster_run_signals_next(self->run->signal_fd)) != 0;) {
        if (number != SIGCHLD) {
            aster_run_tell(self->run, "signal", "signal %d forwarded", number);
            aster_child_signal(&self->child, number);
        } else {
            aster_processes_reap(self->child.pid, self->watchdog.pid);
        }
    }
}

static void sleep_until(struct supervisor *self, int64_t until_ns)
{
    struct itimerspec when = {{0, 0}, {0, 0}};
    if (until_ns != INT64_MAX) {
        when.it_value.tv_sec = (time_t)(until_ns / INT64_C(1000000000));
        when.it_value.tv_nsec = (long)(until_ns % INT64_C(1000000000));
    }
    timerfd_settime(self->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    struct pollfd fds[] = {
        {self->run->signal_fd, POLLIN, 0}, {self->run->status_fd, POLLIN, 0}, {self->timer_fd, POLLIN, 0}};
    poll(fds, 3, -1);
    eventfd_t count;
    eventfd_read(self->run->status_fd, &count);
}

static void watch_command(struct supervisor *self)
{
    for (;;) {
        int64_t now = now_ns();
        if (self->phase == PHASE_RUNNING) {
            aster_child_look(&self->child);
            if (!self->child.ended) {
                look_at_lease(self, now);
            }
        }
        if (look_at_command(self, now)) {
            return;
        }
        if (self->child.stopped && self->child.terminal >= 0) {
            stop_with_command(self);
            continue;
        }
        sleep_until(self, wake_at_ns(self, now));
        pass_signals(self);
    }
}

/* The command is over. A lease that had ended before the command did makes the run a lost one. */
static int finish(struct supervisor *self)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_lease_report report;
    int64_t timeout_ms = self->run->plan.ttl_ms < RELEASE_MAX_MS ? self->run->plan.ttl_ms : RELEASE_MAX_MS;
    aster_lease_report_get(self->run->lease, &report);
    if (aster_lease_release(self->run->lease, timeout_ms, NULL, &error) != ASTER_OK) {
        aster_run_say(self->run, "not-released", "the lease is not released (%s); it lapses by itself within its ttl",
                      error.message);
    }
    if (!self->lost) {
        aster_lease_report_get(self->run->lease, &report);
        if (report.status == ASTER_LEASE_FENCED || report.status == ASTER_LEASE_LOST) {
            say_lost(self, &report, "noticed when the command had ended");
        } else {
            aster_run_tell(self->run, "released", "released epoch %" PRId64, report.epoch);
        }
    }
    return self->lost ? ASTER_EXIT_LOST : self->child.wait_status;
}

static int could_not_start(struct supervisor *self, enum aster_child_start result, int exec_errno,
                           const struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    int code = ASTER_EXIT_INTERNAL;
    if (result == ASTER_CHILD_LATE) {
        aster_run_say(self->run, "lost",
                      "lease lost before the command could start: the store was too slow for this ttl");
        code = ASTER_EXIT_LOST;
    } else if (exec_errno != 0) {
        aster_run_say(self->run, "not-executed", "cannot execute %s: %s",
                      aster_printable(aster_text(self->run->command[0]), shown), strerror(exec_errno));
        code = exec_errno == ENOENT ? ASTER_EXIT_NOT_FOUND : ASTER_EXIT_CANNOT_RUN;
    } else {
        aster_run_say(self->run, "failed", "%s", error->message);
    }
    aster_lease_release(self->run->lease, RELEASE_MAX_MS, NULL, NULL);
    return code;
}

static int start_and_watch(struct supervisor *self)
{
    struct aster_error error = ASTER_ERROR_INIT;
    int exec_errno = 0;
    if (aster_watchdog_start(&self->watchdog, self->limit_ns, &error) != ASTER_OK) {
        return could_not_start(self, ASTER_CHILD_FAILED, 0, &error);
    }
    enum aster_child_start result = aster_child_start(&self->child, self->run, &self->watchdog, &exec_errno, &error);
    if (result != ASTER_CHILD_STARTED) {
        aster_watchdog_stop(&self->watchdog);
        return could_not_start(self, result, exec_errno, &error);
    }
    watch_command(self);
    aster_child_take_terminal(&self->child);
    aster_watchdog_stop(&self->watchdog);
    if (!self->lost && aster_processes_in_group(self->child.pid)) {
        aster_run_say(self->run, "left-behind",
                      "the command ended, but left processes that go on without the lease; let it wait for them");
    }
    aster_child_reap(&self->child);
    if (self->lost && self->phase != PHASE_CONTINUING) {
        aster_processes_kill_children(0);
    }
    return finish(self);
}

int aster_run_supervise(struct aster_run *run)
{
    struct supervisor self = {.run = run, .timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)};
    struct aster_lease_report report;
    if (self.timer_fd < 0) {
        aster_run_say(run, "failed", "cannot make a timer: %s", strerror(errno));
        aster_lease_release(run->lease, RELEASE_MAX_MS, NULL, NULL);
        return ASTER_EXIT_INTERNAL;
    }
    aster_lease_report_get(run->lease, &report);
    self.limit_ns = report.limit_ns;
    aster_run_tell(run, "acquired", "acquired epoch %" PRId64 " as %.*s, ttl %" PRId64 " ms", report.epoch,
                   (int)run->holder.size, (const char *)run->holder.data, run->plan.ttl_ms);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* who leaves the group is still found at the end */
    int code = start_and_watch(&self);
    close(self.timer_fd);
    return code;
}
