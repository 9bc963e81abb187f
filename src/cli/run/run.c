/* `aster run`: options, the wait for the lease, and what to say when there is none. */
#include "cli/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "aster/sys/runtime.h"
#include "base/checked.h"
#include "base/error.h"
#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/run/signals.h"
#include "cli/store.h"
#include "platform/files.h"

#define GRACE_DEFAULT_MAX_MS 5000
#define CANCEL_MS 700 /* an interrupted wait ends within a second, whatever the store does */

static const struct aster_run_options defaults = {0,
                                                  ASTER_LEASE_TTL_DEFAULT_MS,
                                                  ASTER_LEASE_DEFAULT,
                                                  ASTER_LEASE_DEFAULT,
                                                  -1,
                                                  ASTER_ON_LOST_TERMINATE,
                                                  NULL,
                                                  false,
                                                  false};

static const char *const on_lost_words[] = {"terminate", "kill", "continue", NULL};

#define AT(member) offsetof(struct aster_run_options, member)

static const struct aster_option options[] = {
    {"wait", 'w', ASTER_OPTION_DURATION, "D", "wait so long while somebody else holds it (default: try once)",
     AT(wait_ms), NULL},
    {"ttl", 't', ASTER_OPTION_DURATION, "D", "how long the lease lasts without a renewal (default 30s)", AT(ttl_ms),
     NULL},
    {"renew", 0, ASTER_OPTION_DURATION, "D", "renew so often (default: a third of the ttl)", AT(renew_ms), NULL},
    {"margin", 0, ASTER_OPTION_DURATION, "D", "stop so long before the ttl is over (default: a tenth, 1s at most)",
     AT(margin_ms), NULL},
    {"grace", 'g', ASTER_OPTION_DURATION, "D",
     "from TERM to KILL; KILL falls at ttl - margin after the last renewal (default: a quarter of that, 5s at most)",
     AT(grace_ms), NULL},
    {"on-lost", 0, ASTER_OPTION_CHOICE, "WHAT", "terminate (TERM, then KILL), kill, or continue (default: terminate)",
     AT(on_lost), on_lost_words},
    {"holder", 'H', ASTER_OPTION_TEXT, "NAME", "who holds it (default: an identity no other process has)", AT(holder),
     NULL},
    {"own", 0, ASTER_OPTION_FLAG, NULL, "also when HOLDER holds it already: the earlier lease is fenced off", AT(own),
     NULL},
    {"verbose", 'v', ASTER_OPTION_FLAG, NULL, "say on stderr what happens", AT(verbose), NULL},
    ASTER_OPTION_END,
};

/* TERM must not come before a renewal on a healthy store had its turn. */
static int choose_times(const struct aster_cli *cli, struct aster_run *run)
{
    const struct aster_run_options *given = run->options;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = aster_cli_check_ttl(cli, given->ttl_ms);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_renew_plan_make(given->ttl_ms, given->renew_ms, given->margin_ms, ASTER_LEASE_DRIFT_DEFAULT_PPM, NULL,
                              &run->plan, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int64_t usable_ms = aster_renew_plan_limit_ns(&run->plan, 0) / ASTER_NS_PER_MS;
    int64_t spare_ms = usable_ms - run->plan.renew_interval_ms;
    run->grace_ms = given->grace_ms;
    if (given->grace_ms < 0) {
        run->grace_ms = usable_ms / 4 < GRACE_DEFAULT_MAX_MS ? usable_ms / 4 : GRACE_DEFAULT_MAX_MS;
        run->grace_ms = run->grace_ms < spare_ms / 2 ? run->grace_ms : spare_ms / 2;
    }
    if (run->grace_ms >= spare_ms && given->on_lost == ASTER_ON_LOST_TERMINATE) {
        return aster_cli_usage(cli,
                               "grace %" PRId64 " ms is not less than ttl - margin - renew interval = %" PRId64
                               " ms, so TERM would come before a renewal: shorten --grace or lengthen --ttl",
                               run->grace_ms, spare_ms);
    }
    return ASTER_EXIT_OK;
}

static void notice_status(struct aster_lease *lease, enum aster_lease_status status, void *user)
{
    (void)lease;
    (void)status;
    const struct aster_run *run = user;
    eventfd_write(run->status_fd, 1);
}

static void say_who_holds_it(const struct aster_run *run, struct aster_serializer *serializer)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    char since[ASTER_TEXT_MAX];
    char remaining[ASTER_TEXT_MAX];
    if (run->options->wait_ms > 0 && aster_inspect(serializer, run->resource, &reply, NULL) == ASTER_OK &&
        reply.decision.snapshot.held && reply.decision.snapshot.remaining_ns > 0) {
        const struct aster_snapshot *row = &reply.decision.snapshot;
        aster_run_say(run, "waiting", "waiting: %.*s is held by %.*s, epoch %" PRId64 ", since %s, remaining %s",
                      (int)row->resource.size, (const char *)row->resource.data, (int)row->holder.size,
                      (const char *)row->holder.data, row->epoch, aster_text_since(row->since_unix_ms, since),
                      aster_text_seconds(row->remaining_ns, remaining));
    }
    aster_reply_fini(&reply);
}

/* Until the acquire is answered (0), or a signal ends the wait (its number). */
static int await_answer(const struct aster_run *run)
{
    struct pollfd fds[] = {{run->signal_fd, POLLIN, 0}, {run->status_fd, POLLIN, 0}};
    for (;;) {
        struct aster_lease_report report;
        eventfd_t count;
        aster_lease_report_get(run->lease, &report);
        if (report.status != ASTER_LEASE_ACQUIRING) {
            return 0;
        }
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            return SIGTERM;
        }
        eventfd_read(run->status_fd, &count);
        for (int number; (number = aster_run_signals_next(run->signal_fd)) != 0;) {
            if (aster_run_signal_ends(number)) {
                return number;
            }
            if (number == SIGTSTP) {
                raise(SIGSTOP);
            }
        }
    }
}

/* The waiter goes away, and a grant that raced with the signal is given back, as far as a second allows. */
static void give_up(struct aster_run *run, struct aster_runtime *runtime)
{
    aster_lease_cancel(run->lease);
    aster_lease_destroy(run->lease);
    run->lease = NULL;
    for (int ms = 0; ms < CANCEL_MS && aster_runtime_handles(runtime) > 0; ms += 5) {
        aster_pause_ns(5 * ASTER_NS_PER_MS);
    }
}

static int not_granted(const struct aster_cli *cli, struct aster_run *run)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int code;
    if (aster_lease_wait_acquired(run->lease, 0, &reply, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else {
        if (run->options->verbose) {
            aster_print_snapshot(&reply.decision.snapshot, stderr);
        }
        code = aster_cli_denied(cli, &reply.decision, run->holder, ASTER_EXIT_NOT_ACQUIRED);
    }
    aster_reply_fini(&reply);
    return code;
}

static int acquire_and_run(const struct aster_cli *cli, struct aster_run *run, struct aster_serializer *serializer,
                           struct aster_runtime *runtime, bool *interrupted)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_lease_options lease_options = ASTER_LEASE_OPTIONS_INIT;
    lease_options.ttl_ms = run->plan.ttl_ms;
    lease_options.renew_interval_ms = run->plan.renew_interval_ms;
    lease_options.margin_ms = run->plan.margin_ms;
    lease_options.wait_ms = run->options->wait_ms;
    lease_options.take_over_own = run->options->own;
    lease_options.on_status = notice_status;
    lease_options.user = run;
    lease_options.runtime = runtime;
    say_who_holds_it(run, serializer);
    if (aster_lease_start(serializer, run->resource, run->holder, &lease_options, &run->lease, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int number = await_answer(run);
    if (number != 0) {
        give_up(run, runtime);
        *interrupted = true;
        return ASTER_EXIT_SIGNAL + number;
    }
    struct aster_lease_report report;
    aster_lease_report_get(run->lease, &report);
    int code = report.status == ASTER_LEASE_NOT_GRANTED ? not_granted(cli, run) : aster_run_supervise(run);
    aster_lease_destroy(run->lease);
    return code;
}

static int with_store(const struct aster_cli *cli, struct aster_run *run)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_store_name name;
    struct aster_serializer *serializer = NULL;
    struct aster_runtime *runtime = NULL;
    struct aster_runtime_options runtime_options = ASTER_RUNTIME_OPTIONS_INIT;
    bool interrupted = false;
    int code = aster_store_open(cli, ASTER_STORE_CREATE, &name, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    run->store = name.text;
    if (aster_runtime_create(&runtime_options, &runtime, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else {
        code = acquire_and_run(cli, run, serializer, runtime, &interrupted);
    }
    if (interrupted && aster_runtime_handles(runtime) > 0) {
        return code; /* the store does not answer, and the user wants to leave */
    }
    aster_runtime_destroy(runtime);
    aster_serializer_destroy(serializer);
    return code;
}

static int run_command(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    struct aster_run run = {
        .options = user, .json = cli->json, .resource = aster_text(argv[0]), .status_fd = -1, .signal_fd = -1};
    struct aster_error error = ASTER_ERROR_INIT;
    char holder[ASTER_HOLDER_SIZE];
    if (argc < 3) {
        return aster_cli_usage(cli, "there is no command: aster run RESOURCE -- COMMAND...");
    }
    run.command = argv + 2;
    if (aster_resource_check(run.resource, &error) != ASTER_OK ||
        aster_holder_resolve(cli, run.options->holder, holder, &run.holder, &error) != ASTER_OK ||
        aster_identity_check(run.holder, "holder", &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int code = choose_times(cli, &run);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_run_signals_take(&run.mask, &run.signal_fd, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    run.status_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run.status_fd < 0) {
        aster_error_set_os(&error, ASTER_ERR_IO, errno, "cannot make an event descriptor");
        return aster_cli_fail(cli, &error);
    }
    code = with_store(cli, &run);
    close(run.signal_fd);
    return code; /* status_fd stays: a last callback may still use it */
}

const struct aster_command aster_command_run = {
    .name = "run",
    .summary = "Hold a lease while a command runs",
    .operands = "RESOURCE -- COMMAND...",
    .operands_min = 1,
    .operands_max = 1,
    .details = "When the lease is lost, the command's process group gets TERM, and KILL at the self-limit, before "
               "anyone else\n"
               "can be granted; also when aster run itself is killed or stopped. Signals are forwarded to the group.\n"
               "The lease is released when the command ends: processes that it leaves behind are not guarded.\n"
               "The command finds ASTER_RESOURCE, ASTER_EPOCH, ASTER_HOLDER, ASTER_FENCE and ASTER_STORE in its "
               "environment.\n\n"
               "Exit status: the command's own (128 + N after signal N); 75 not acquired, 76 lease lost, 69 store "
               "unreachable,\n"
               "77 refused, 64 usage, 78 configuration, 126 and 127 the command cannot be executed or found.\n\n"
               "With --json: one object per line on stderr for everything that happens to the lease.",
    .example = "aster run nightly-report --ttl 30s --wait 10s -- sh -c 'echo \"epoch $ASTER_EPOCH\"'",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .after_dashes = true,
    .run = run_command,
};
