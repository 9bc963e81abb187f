/* Declarative options: a table says where each one's value goes; parsing, errors and help text come from it. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "aster/status.h"

enum aster_option_kind {
    ASTER_OPTION_FLAG,     /* bool */
    ASTER_OPTION_TEXT,     /* const char *, borrowed from argv */
    ASTER_OPTION_DURATION, /* int64_t milliseconds */
    ASTER_OPTION_COUNT,    /* int64_t >= 0 */
    ASTER_OPTION_TEXTS,    /* struct aster_option_texts: may be given several times */
    ASTER_OPTION_CHOICE    /* int: index of the word in `choices` */
};

#define ASTER_OPTION_TEXTS_MAX 64

struct aster_option_texts {
    size_t count;
    const char *items[ASTER_OPTION_TEXTS_MAX]; /* borrowed from argv */
};

struct aster_option {
    const char *name; /* long name; NULL ends a table */
    char letter;      /* short name, or 0 */
    enum aster_option_kind kind;
    const char *argument;       /* what help calls the value; NULL for a flag */
    const char *help;           /* NULL: not for people */
    size_t offset;              /* of the destination in the arguments' struct */
    const char *const *choices; /* NULL-terminated; CHOICE only */
};

#define ASTER_OPTION_END                                                                                               \
    {                                                                                                                  \
        NULL, '\0', ASTER_OPTION_FLAG, NULL, NULL, 0, NULL                                                             \
    }

/* One table of options and the struct that it fills. */
struct aster_option_group {
    const struct aster_option *options;
    void *destination;
};

/* Parse argv[1..argc) with the options of every group; they may stand before or after the operands, and "--" ends
 * them. argv is reordered; operands start at *operands. Errors: ASTER_ERR_INVALID, one line with what to do. */
aster_status aster_options_parse(const struct aster_option_group *groups, size_t group_count, int argc, char **argv,
                                 int *operands, struct aster_error *error);

/* Print one line of help per option. */
void aster_options_help(const struct aster_option *options, FILE *out);

#endif
