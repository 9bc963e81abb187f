/* `aster`: find the command, parse its arguments, run it. */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/command.h"

static bool is_any(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 || strcmp(text, second) == 0;
}

/* With after_dashes the words from "--" on are another program's: they are hidden from the parser. Returns argc up to
 * the "--", which becomes NULL, or argc when there is none. */
static int cut_at_dashes(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0) {
        i++;
    }
    argv[i] = NULL;
    return i;
}

/* Say which operand is missing: its word in the synopsis. */
static int refuse_missing(const struct aster_cli *cli, const struct aster_command *command, int count)
{
    const char *word = command->operands;
    for (int i = 0; i < count; i++) {
        word += strcspn(word, " ") + 1;
    }
    return aster_cli_usage(cli, "%.*s is missing: aster %s %s", (int)strcspn(word, " "), word, command->name,
                           command->operands);
}

static int check_operands(const struct aster_cli *cli, const struct aster_command *command, int count)
{
    if (count < command->operands_min) {
        return refuse_missing(cli, command, count);
    }
    if (command->operands_max >= 0 && count > command->operands_max) {
        return aster_cli_usage(cli, "too many arguments: aster %s%s%s%s", command->name,
                               command->operands[0] != '\0' ? " " : "", command->operands,
                               command->after_dashes ? " (the command goes after --)" : "");
    }
    return ASTER_EXIT_OK;
}

static int refuse_command(const char *name)
{
    char shown[ASTER_PRINTABLE_MAX];
    aster_printable(aster_text(name), shown);
    if (name[0] == '-') {
        fprintf(stderr, "aster: options come after the command: aster COMMAND %s; `aster help` lists the commands\n",
                shown);
        return ASTER_EXIT_USAGE;
    }
    const char *meant = aster_command_nearest(name);
    fprintf(stderr, "aster: there is no command \"%s\"%s%s%s; `aster help` lists them\n", shown,
            meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?" : "");
    return ASTER_EXIT_USAGE;
}

static int run(const struct aster_command *command, int argc, char **argv)
{
    alignas(max_align_t) unsigned char arguments[ASTER_ARGUMENTS_MAX];
    struct aster_cli cli = {.command = command->name, .store = getenv("ASTER_STORE")};
    struct aster_error error = ASTER_ERROR_INIT;
    int own = command->after_dashes ? cut_at_dashes(argc, argv) : argc;
    int first;
    if (command->arguments_size > 0) {
        memcpy(arguments, command->defaults, command->arguments_size);
    }
    const struct aster_option_group groups[] = {{command->options, arguments}, {aster_common_options, &cli}};
    if (aster_options_parse(groups, 2, own, argv, &first, &error) != ASTER_OK) {
        return aster_cli_usage(&cli, "%s", error.message);
    }
    if (cli.help) {
        aster_help_command(command, stdout);
        return ASTER_EXIT_OK;
    }
    int code = check_operands(&cli, command, own - first);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    /* operands, then, if there was a "--", a NULL and the other program's words */
    return command->run(&cli, arguments, argc - first, argv + first);
}

/* Output that did not reach its reader must not look like success. */
static int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("aster: cannot write the output\n", stderr);
        return code == ASTER_EXIT_OK ? ASTER_EXIT_IO : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        aster_help_program(stderr);
        return ASTER_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (is_any(name, "--help", "-h")) {
        name = "help";
    } else if (is_any(name, "--version", "-V")) {
        name = "version";
    }
    const struct aster_command *command = aster_command_find(name);
    if (command == NULL) {
        return refuse_command(argv[1]);
    }
    return finish(run(command, argc - 1, argv + 1));
}
