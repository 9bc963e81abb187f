#include <string.h>

#include "cli/command.h"

/* What follows "--" is another program's: options come before it. */
static void print_synopsis(const struct aster_command *command, FILE *out)
{
    const char *passed_on = command->after_dashes ? strstr(command->operands, "-- ") : NULL;
    size_t own = passed_on != NULL ? (size_t)(passed_on - command->operands) : strlen(command->operands);
    while (own > 0 && command->operands[own - 1] == ' ') {
        own--;
    }
    fprintf(out, "aster %s%s%.*s%s%s%s\n", command->name, own > 0 ? " " : "", (int)own, command->operands,
            command->options[0].name != NULL ? " [OPTIONS]" : "", passed_on != NULL ? " " : "",
            passed_on != NULL ? passed_on : "");
}

void aster_help_command(const struct aster_command *command, FILE *out)
{
    print_synopsis(command, out);
    fprintf(out, "\n%s.\n", command->summary);
    if (command->details != NULL) {
        fprintf(out, "\n%s\n", command->details);
    }
    fputs("\nOptions:\n", out);
    aster_options_help(command->options, out);
    aster_options_help(aster_command_common_options(command), out);
    fprintf(out, "\nExample:\n  %s\n", command->example);
}

void aster_help_program(FILE *out)
{
    fputs("aster: leases with a fence. A worker that lost its lease cannot write any more.\n\n", out);
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        fprintf(out, "  %-12s%s\n", aster_commands[i]->name, aster_commands[i]->summary);
    }
    fputs("\n`aster COMMAND --help` explains a command and shows an example. Start here:\n"
          "  aster demo\n"
          "  aster run nightly-report -- sh -c 'echo \"epoch $ASTER_EPOCH\"'\n",
          out);
}
