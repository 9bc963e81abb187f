/* `aster plan`: from what a user knows to the times of a lease. */
#include "base/error.h"
#include "cli/command.h"
#include "cli/duration.h"
#include "cli/output.h"

static const struct aster_plan_inputs defaults = {-1, -1, -1};

static const struct aster_option options[] = {
    {"work", 'w', ASTER_OPTION_DURATION, "D", "how long the guarded work usually takes",
     offsetof(struct aster_plan_inputs, work_ms), NULL},
    {"pause", 'p', ASTER_OPTION_DURATION, "D", "longest pause or outage that a holder must survive",
     offsetof(struct aster_plan_inputs, pause_ms), NULL},
    {"recover", 'r', ASTER_OPTION_DURATION, "D", "longest time until somebody else may go on after a crash",
     offsetof(struct aster_plan_inputs, recover_ms), NULL},
    ASTER_OPTION_END,
};

static void print_line(const char *name, int64_t ms, const char *meaning)
{
    char text[ASTER_DURATION_TEXT_SIZE];
    printf("%-18s%-12s%s\n", name, aster_duration_format(ms, text), meaning);
}

static int print_text(const struct aster_plan *plan)
{
    const struct aster_renew_plan *renew = &plan->renew;
    char ttl[ASTER_DURATION_TEXT_SIZE];
    char interval[ASTER_DURATION_TEXT_SIZE];
    char margin[ASTER_DURATION_TEXT_SIZE];
    print_line("ttl", renew->ttl_ms, "the store gives the resource to nobody else for so long after a renewal");
    print_line("renew every", renew->renew_interval_ms, "in the background, however long the work takes");
    print_line("margin", renew->margin_ms, "the holder stops by itself so long before the ttl is over");
    print_line("survives pauses", plan->tolerated_pause_ms, "of the holder, or outages of the store");
    print_line("worst takeover", plan->takeover_ms, "after the last renewal of a holder that died");
    printf("\n  aster run RESOURCE --ttl %s --renew %s --margin %s -- COMMAND...\n\n",
           aster_duration_format(renew->ttl_ms, ttl), aster_duration_format(renew->renew_interval_ms, interval),
           aster_duration_format(renew->margin_ms, margin));
    printf(
        "Who may take over: whoever runs `aster run` or `aster acquire` on the resource, once the ttl has passed\n"
        "without a renewal (the store judges that, on its own clock), or at once after a release or `aster revoke`.\n"
        "Clocks: the clocks of holder and store may differ in rate by %lld ppm at most; they need not agree on the\n"
        "time. A pause longer than planned costs the lease, never the data: the late write is refused by its fence.\n",
        (long long)renew->drift_ppm);
    return ASTER_EXIT_OK;
}

static int print_json(const struct aster_plan *plan)
{
    const struct aster_renew_plan *renew = &plan->renew;
    return aster_json_print(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "ttl_ms", (json_int_t)renew->ttl_ms,
                                      "renew_interval_ms", (json_int_t)renew->renew_interval_ms, "margin_ms",
                                      (json_int_t)renew->margin_ms, "drift_ppm", (json_int_t)renew->drift_ppm,
                                      "tolerated_pause_ms", (json_int_t)plan->tolerated_pause_ms, "takeover_ms",
                                      (json_int_t)plan->takeover_ms),
                            JSON_COMPACT, stdout);
}

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const struct aster_plan_inputs *inputs = arguments;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_plan plan;
    if (inputs->work_ms < 0 && inputs->pause_ms < 0 && inputs->recover_ms < 0) {
        return aster_cli_usage(cli, "give at least one of --work, --pause, --recover");
    }
    if (aster_plan_derive(inputs, &plan, &error) != ASTER_OK) {
        aster_cli_fail(cli, &error);
        return ASTER_EXIT_CONFIG;
    }
    return cli->json ? print_json(&plan) : print_text(&plan);
}

const struct aster_command aster_command_plan = {
    .name = "plan",
    .summary = "Choose ttl, renewal and margin from what you know",
    .operands = "",
    .example = "aster plan --work 20s --pause 5s --recover 60s",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .storeless = true,
    .run = run,
};
