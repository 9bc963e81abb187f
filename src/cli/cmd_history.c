/* `aster history`: what was decided. */
#include "cli/events.h"

struct arguments {
    int64_t limit;
    int64_t after;
    bool follow;
};

static const struct arguments defaults = {-1, 0, false};

static const struct aster_option options[] = {
    {"limit", 'n', ASTER_OPTION_COUNT, "N", "only the newest N events", offsetof(struct arguments, limit), NULL},
    {"after", 0, ASTER_OPTION_COUNT, "REVISION", "only events after this revision", offsetof(struct arguments, after),
     NULL},
    {"follow", 'f', ASTER_OPTION_FLAG, NULL, "go on with new events as they come", offsetof(struct arguments, follow),
     NULL},
    ASTER_OPTION_END,
};

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    const struct arguments *arguments = user;
    int64_t limit = arguments->limit < 0 ? 0 : arguments->limit; /* 0 = all, for the serializer */
    if (arguments->limit == 0) {
        return aster_cli_usage(cli, "--limit 0 would show nothing: give 1 or more");
    }
    return aster_events_print(cli, argc > 0 ? argv[0] : NULL, arguments->after, limit, arguments->follow);
}

const struct aster_command aster_command_history = {
    .name = "history",
    .summary = "Show grants, takeovers, releases, revocations and refused writes",
    .operands = "[RESOURCE]",
    .operands_max = 1,
    .details = "Renewals and puts are not events. The store keeps a bounded number; the oldest go first.\n"
               "With --json: one object per line.",
    .example = "aster history nightly-report --limit 20",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
