/* `aster watch`: events as they come. */
#include "cli/events.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    return aster_events_print(cli, argc > 0 ? argv[0] : NULL, -1, 0, true);
}

const struct aster_command aster_command_watch = {
    .name = "watch",
    .summary = "Print new events as they come",
    .operands = "[RESOURCE]",
    .operands_max = 1,
    .details = "Looks five times a second. `aster history --follow` begins with the events so far.\n"
               "With --json: one object per line.",
    .example = "aster watch nightly-report",
    .options = options,
    .run = run,
};
