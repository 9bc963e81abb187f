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
        struct aster_error error;
        const char *meant = aster_command_nearest(argv[0]);
        aster_error_set(&error, ASTER_ERR_INVALID, "there is no command \"%s\"%s%s%s; `aster help` lists them",
                        aster_printable(aster_text(argv[0]), shown), meant != NULL ? "; did you mean " : "",
                        meant != NULL ? meant : "", meant != NULL ? "?" : "");
        aster_cli_fail(cli, &error);
        return ASTER_EXIT_USAGE;
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
    .storeless = true,
    .run = run,
};
