/* `aster version`. */
#include <sqlite3.h>

#include "cli/command.h"
#include "cli/output.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    (void)argc;
    (void)argv;
    if (cli->json) {
        return aster_json_print(json_pack("{s:s, s:s}", "aster", aster_version(), "sqlite", sqlite3_libversion()),
                                JSON_COMPACT, stdout);
    }
    printf("aster %s (SQLite %s)\n", aster_version(), sqlite3_libversion());
    return ASTER_EXIT_OK;
}

const struct aster_command aster_command_version = {
    .name = "version",
    .summary = "Print the version",
    .operands = "",
    .example = "aster version --json",
    .options = options,
    .storeless = true,
    .run = run,
};
