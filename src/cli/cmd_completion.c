/* `aster completion SHELL`: a script made from the command table, so that it cannot differ from it. */
#include <string.h>

#include "cli/command.h"

static const struct aster_option options[] = {ASTER_OPTION_END};

typedef void (*visit_option)(const struct aster_command *command, const struct aster_option *option);

static void each_option(const struct aster_command *command, visit_option visit)
{
    const struct aster_option *tables[] = {command->options, aster_command_common_options(command)};
    for (size_t i = 0; i < 2; i++) {
        for (const struct aster_option *option = tables[i]; option->name != NULL; option++) {
            if (option->help != NULL) {
                visit(command, option);
            }
        }
    }
}

static void print_names(void)
{
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", aster_commands[i]->name);
    }
}

/* In single quotes of bash and zsh. */
static void print_quoted(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else if (*text == '[' || *text == ']' || *text == ':') {
            printf("\\%c", *text);
        } else {
            putchar(*text);
        }
    }
}

static void bash_option(const struct aster_command *command, const struct aster_option *option)
{
    (void)command;
    printf(" --%s", option->name);
}

static void bash_choices(const struct aster_command *command, const struct aster_option *option)
{
    if (option->choices == NULL) {
        return;
    }
    printf("    %s:--%s) words='", command->name, option->name);
    for (size_t i = 0; option->choices[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", option->choices[i]);
    }
    puts("' ;;");
}

static void print_bash(void)
{
    fputs("# bash completion for aster\n_aster() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '",
          stdout);
    print_names();
    /* What follows "--" is another program's command line: its name, then what the shell completes by itself. */
    fputs("' -- \"$cur\"))\n        return\n    fi\n"
          "    case \" ${COMP_WORDS[*]:2:COMP_CWORD-2} \" in\n"
          "    *' -- ') COMPREPLY=($(compgen -c -- \"$cur\")); return ;;\n"
          "    *' -- '*) COMPREPLY=(); return ;;\n    esac\n"
          "    case ${COMP_WORDS[1]}:$prev in\n    help:help) words='",
          stdout);
    print_names();
    fputs("' ;;\n", stdout);
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        each_option(aster_commands[i], bash_choices);
    }
    fputs("    *)\n        case ${COMP_WORDS[1]} in\n", stdout);
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        printf("        %s) words='%s", aster_commands[i]->name,
               aster_commands[i]->words != NULL ? aster_commands[i]->words : "");
        each_option(aster_commands[i], bash_option);
        puts("' ;;");
    }
    fputs("        esac ;;\n    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
          "complete -o default -F _aster aster\n",
          stdout);
}

static void zsh_option(const struct aster_command *command, const struct aster_option *option)
{
    (void)command;
    printf(" \\\n            '--%s%s[", option->name, option->argument != NULL ? "=" : "");
    print_quoted(option->help);
    putchar(']');
    if (option->choices != NULL) {
        printf(":%s:(", option->argument);
        for (size_t i = 0; option->choices[i] != NULL; i++) {
            printf("%s%s", i == 0 ? "" : " ", option->choices[i]);
        }
        putchar(')');
    } else if (option->argument != NULL) {
        printf(":%s:", option->argument);
    }
    putchar('\'');
}

static void print_zsh(void)
{
    puts("#compdef aster\n_aster() {\n    local -a commands\n    commands=(");
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        printf("        '%s:", aster_commands[i]->name);
        print_quoted(aster_commands[i]->summary);
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
         "    case $words[2] in");
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        printf("    %s)\n        _arguments '1:command:'", aster_commands[i]->name);
        each_option(aster_commands[i], zsh_option);
        if (aster_commands[i]->words != NULL) {
            printf(" \\\n            '2:what:(%s)'", aster_commands[i]->words);
        }
        puts(" \\\n            '*::word:_default' ;;");
    }
    puts("    esac\n}\n_aster \"$@\"");
}

static void print_fish_text(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const struct aster_command *command, const struct aster_option *option)
{
    printf("complete -c aster -n '__fish_seen_subcommand_from %s' -l %s%s -d ", command->name, option->name,
           option->argument != NULL ? " -r" : "");
    print_fish_text(option->help);
    if (option->choices != NULL) {
        fputs(" -a '", stdout);
        for (size_t i = 0; option->choices[i] != NULL; i++) {
            printf("%s%s", i == 0 ? "" : " ", option->choices[i]);
        }
        putchar('\'');
    }
    putchar('\n');
}

static void print_fish(void)
{
    puts("# fish completion for aster");
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        printf("complete -c aster -f -n __fish_use_subcommand -a %s -d ", aster_commands[i]->name);
        print_fish_text(aster_commands[i]->summary);
        putchar('\n');
        each_option(aster_commands[i], fish_option);
        if (aster_commands[i]->words != NULL) {
            printf("complete -c aster -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", aster_commands[i]->name,
                   aster_commands[i]->words);
        }
    }
}

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    (void)arguments;
    (void)argc;
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(argv[0], shells[i].name) == 0) {
            shells[i].print();
            return ASTER_EXIT_OK;
        }
    }
    return aster_cli_usage(cli, "there is completion for bash, zsh and fish");
}

const struct aster_command aster_command_completion = {
    .name = "completion",
    .summary = "Print a completion script for bash, zsh or fish",
    .operands = "bash|zsh|fish",
    .operands_min = 1,
    .operands_max = 1,
    .words = "bash zsh fish",
    .example = "source <(aster completion bash)",
    .options = options,
    .storeless = true,
    .run = run,
};
