/* A command of `aster`: one static description per cmd_*.c, gathered in commands.c. Help, completion and dispatch come
 * from it. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "aster/aster.h"
#include "aster/sys/clock.h"
#include "cli/exit.h"
#include "cli/options.h"

/* What every command gets. */
struct aster_cli {
    const char *command; /* its name, for messages */
    const char *store;   /* --store, or ASTER_STORE, or NULL for the default */
    const char *node;    /* --node, or NULL; see cli/grantor/grantor.h */
    bool json;
    bool help;
};

#define ASTER_ARGUMENTS_MAX 2560 /* bytes of the largest struct of parsed arguments */

struct aster_command {
    const char *name;
    const char *summary;  /* one line for `aster help` */
    const char *operands; /* for the synopsis, for example "RESOURCE" */
    int operands_min;
    int operands_max;    /* -1 = any number */
    const char *words;   /* what the first operand may be, separated by spaces, for completion; or NULL */
    const char *details; /* paragraphs for its help; or NULL */
    const char *example;
    const struct aster_option *options;
    const void *defaults; /* initial arguments, arguments_size bytes */
    size_t arguments_size;
    bool storeless;    /* it touches no store: --store is accepted, and not offered */
    bool after_dashes; /* operands after "--" belong to another program and are passed on unchanged */
    int (*run)(const struct aster_cli *cli, const void *arguments, int argc, char **argv); /* the exit status */
};

/* Every command, in the order of `aster help`; ends with NULL. */
extern const struct aster_command *const aster_commands[];

/* The options that every command has. Their destination is a struct aster_cli. */
extern const struct aster_option aster_common_options[];

/* Those of them that help and completion offer for a command. */
const struct aster_option *aster_command_common_options(const struct aster_command *command);

/* The command of that name, or NULL. */
const struct aster_command *aster_command_find(const char *name);

/* The name of the command that was probably meant, or NULL. */
const char *aster_command_nearest(const char *name);

/* Help for one command, or for the program. */
void aster_help_command(const struct aster_command *command, FILE *out);
void aster_help_program(FILE *out);

/* Say on stderr what went wrong, in one line, and return the exit status of error->status. */
int aster_cli_fail(const struct aster_cli *cli, const struct aster_error *error);

/* Refuse a --ttl out of range, in the units of the command line. Returns an exit status. */
int aster_cli_check_ttl(const struct aster_cli *cli, int64_t ttl_ms);

/* Say on stderr that the command line is wrong and where help is; returns ASTER_EXIT_USAGE. */
int aster_cli_usage(const struct aster_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
