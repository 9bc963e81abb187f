/* The command line of `aster demo`. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/demo/demo.h"
#include "cli/demo/worker.h"

struct arguments {
    const char *out;
    const char *svg;
    bool grantor;
};

static const struct arguments defaults = {NULL, NULL, false};

static const struct aster_option options[] = {
    {"out", 'o', ASTER_OPTION_TEXT, "DIR", "keep the stores, PDFs and the picture in DIR (default: a fresh directory)",
     offsetof(struct arguments, out), NULL},
    {"svg", '\0', ASTER_OPTION_TEXT, "FILE", "write the timeline as a picture to FILE (default: DIR/demo-timeline.svg)",
     offsetof(struct arguments, svg), NULL},
    {"grantor", 'g', ASTER_OPTION_FLAG, NULL, "over QUIC to a grantor, with worker A's network cut instead",
     offsetof(struct arguments, grantor), NULL},
    ASTER_OPTION_END,
};

/* For tests of the demo itself: a demo that cannot fail proves nothing. */
static int read_sabotage(const struct aster_cli *cli, bool grantor, bool *sabotaged)
{
    const char *known = grantor ? "no-cut" : "no-fence";
    const char *sabotage = getenv("ASTER_DEMO_SABOTAGE");
    if (sabotage == NULL || sabotage[0] == '\0') {
        return 0;
    }
    if (strcmp(sabotage, known) != 0) {
        return aster_cli_usage(cli, "ASTER_DEMO_SABOTAGE can only be \"%s\"", known);
    }
    *sabotaged = true;
    fprintf(stderr, "aster demo: sabotaged, act 1 %s; this run must fail\n",
            grantor ? "does not cut the network" : "writes without the fence");
    return 0;
}

static int run(const struct aster_cli *cli, const void *parsed, int argc, char **argv)
{
    const struct arguments *arguments = parsed;
    if (argc > 0 && strcmp(argv[0], DEMO_WORKER_OPERAND) == 0) {
        return aster_demo_worker_main(argc - 1, argv + 1);
    }
    if (argc > 0) {
        return aster_cli_usage(cli, "it takes no operands");
    }
    struct demo_options demo = {.directory = arguments->out, .svg = arguments->svg, .json = cli->json};
    demo.grantor = arguments->grantor;
    int refused = read_sabotage(cli, demo.grantor, &demo.sabotaged);
    return refused != 0 ? refused : aster_demo_run(&demo, stdout);
}

const struct aster_command aster_command_demo = {
    .name = "demo",
    .summary = "Watch a stale write being rejected, and accepted where nothing checks",
    .operands = "",
    .operands_min = 0,
    .operands_max = -1, /* the demo starts itself again as its workers */
    .details =
        "Two worker processes own one invoice in a SQLite store, one after the other. The first is stopped\n"
        "(SIGSTOP) between its check and its write for longer than its lease; the second takes over and publishes;\n"
        "the first goes on and writes. Act 1 carries the fence and rejects the late write, act 2 does the same in\n"
        "memory, act 3 is the control run with a plain lease, which corrupts its store.\n"
        "\n"
        "With --grantor the lease and the invoice are those of a grantor that the demo starts, asterd, and every\n"
        "worker has a key of its own. Instead of stopping worker A the demo cuts its network. A's lease ends by "
        "itself\n"
        "before B is granted, and its write, which was on the way, is refused when the network is back. Act 2 tries "
        "to\n"
        "act as somebody else.\n"
        "\n"
        "Takes about eight seconds. The exit status is 0 only if all of it really happened.",
    .example = "aster demo --out /tmp/demo",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .storeless = true,
    .run = run,
};
