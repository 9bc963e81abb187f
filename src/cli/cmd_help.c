/* `aster help [COMMAND]`. */
#include "base/error.h"
#include "cli/command.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    if (argc == 0) {
        aster_help_program(stdout);
        return ASTER_EXIT_OK;
    }
    const struct aster_command *command = aster_command_find(argv[0]);
    if (command == NULL) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_cli_usage(cli, "there is no command \"%s\"", aster_printable(aster_text(argv[0]), shown));
    }
    aster_help_command(command, stdout);
    return ASTER_EXIT_OK;
}

const struct aster_command aster_command_help = {
    .name = "help",
    .summary = "List the commands, or explain one",
    .operands = "[COMMAND]",
    .operands_max = 1,
    .example = "aster help run",
    .options = options,
    .run = run,
};
