#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aster/bytes.h"
#include "base/error.h"
#include "cli/duration.h"
#include "cli/nearest.h"

#define OPTIONS_MAX 48
#define HELP_COLUMN 26

struct parser {
    const struct aster_option *known[OPTIONS_MAX];
    void *destination[OPTIONS_MAX];
    struct option long_options[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 2];
    int count;
};

static void prepare(struct parser *parser, const struct aster_option_group *groups, size_t group_count)
{
    size_t used = 0;
    memset(parser, 0, sizeof *parser);
    parser->letters[used++] = ':';
    for (size_t g = 0; g < group_count; g++) {
        for (const struct aster_option *o = groups[g].options; o->name != NULL && parser->count < OPTIONS_MAX; o++) {
            int i = parser->count++;
            int wants = o->kind == ASTER_OPTION_FLAG ? no_argument : required_argument;
            parser->known[i] = o;
            parser->destination[i] = (char *)groups[g].destination + o->offset;
            parser->long_options[i] = (struct option){o->name, wants, NULL, 256 + i};
            if (o->letter != '\0') {
                parser->letters[used++] = o->letter;
                if (wants == required_argument) {
                    parser->letters[used++] = ':';
                }
            }
        }
    }
}

static int find(const struct parser *parser, int code)
{
    if (code >= 256) {
        return code - 256;
    }
    for (int i = 0; i < parser->count; i++) {
        if (parser->known[i]->letter == code) {
            return i;
        }
    }
    return -1;
}

static aster_status parse_count(const char *text, int64_t *count, struct aster_error *error)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set(error, ASTER_ERR_INVALID, "\"%s\" is not a whole number from 0 to %" PRId64,
                               aster_printable(aster_text(text), shown), INT64_MAX);
    }
    *count = value;
    return ASTER_OK;
}

static aster_status parse_choice(const struct aster_option *option, const char *text, int *index,
                                 struct aster_error *error)
{
    char words[128] = "";
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *index = i;
            return ASTER_OK;
        }
        size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", i == 0 ? "" : ", ", option->choices[i]);
    }
    char shown[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_INVALID, "\"%s\" is none of: %s", aster_printable(aster_text(text), shown),
                           words);
}

static aster_status append(const char *text, struct aster_option_texts *texts, struct aster_error *error)
{
    if (texts->count == ASTER_OPTION_TEXTS_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "given more than %d times", ASTER_OPTION_TEXTS_MAX);
    }
    texts->items[texts->count++] = text;
    return ASTER_OK;
}

static aster_status store(const struct aster_option *option, void *destination, const char *text,
                          struct aster_error *error)
{
    struct aster_error detail = ASTER_ERROR_INIT;
    aster_status status = ASTER_OK;
    switch (option->kind) {
    case ASTER_OPTION_FLAG:
        *(bool *)destination = true;
        break;
    case ASTER_OPTION_TEXT:
        *(const char **)destination = text;
        break;
    case ASTER_OPTION_DURATION:
        status = aster_duration_parse(text, destination, &detail);
        break;
    case ASTER_OPTION_COUNT:
        status = parse_count(text, destination, &detail);
        break;
    case ASTER_OPTION_TEXTS:
        status = append(text, destination, &detail);
        break;
    case ASTER_OPTION_CHOICE:
        status = parse_choice(option, text, destination, &detail);
        break;
    }
    if (status != ASTER_OK) {
        return aster_error_set(error, status, "--%s: %s", option->name, detail.message);
    }
    return ASTER_OK;
}

static const char *value_wanted(const struct aster_option *option)
{
    switch (option->kind) {
    case ASTER_OPTION_DURATION:
        return "a duration such as 500ms, 30s or 1h30m";
    case ASTER_OPTION_COUNT:
        return "a whole number";
    default:
        return option->argument;
    }
}

/* getopt tells an unknown long option and the common beginning of several by the same answer. */
static aster_status refuse_long(const struct parser *parser, const char *given, struct aster_error *error)
{
    char name[64];
    char shown[ASTER_PRINTABLE_MAX];
    int candidates = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    struct aster_nearest nearest = {name, NULL, 0};
    for (int i = 0; i < parser->count; i++) {
        candidates += strncmp(parser->known[i]->name, name, strlen(name)) == 0;
        aster_nearest_offer(&nearest, parser->known[i]->name);
    }
    aster_printable(aster_text(name), shown);
    if (candidates > 1) {
        return aster_error_set(error, ASTER_ERR_INVALID, "more than one option begins with --%s", shown);
    }
    return aster_error_set(error, ASTER_ERR_INVALID, "there is no option --%s%s%s%s", shown,
                           nearest.found != NULL ? "; did you mean --" : "", nearest.found != NULL ? nearest.found : "",
                           nearest.found != NULL ? "?" : "");
}

static aster_status refuse(const struct parser *parser, int code, char **argv, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    int index = code == ':' || optopt >= 256 ? find(parser, optopt) : -1;
    if (code == ':' && index >= 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "--%s needs a value: %s", parser->known[index]->name,
                               value_wanted(parser->known[index]));
    }
    if (index >= 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "--%s takes no value", parser->known[index]->name);
    }
    if (optopt != 0) {
        char letter[] = {'-', (char)optopt, '\0'};
        return aster_error_set(error, ASTER_ERR_INVALID, "there is no option %s",
                               aster_printable(aster_text(letter), shown));
    }
    return refuse_long(parser, argv[optind - 1], error);
}

aster_status aster_options_parse(const struct aster_option_group *groups, size_t group_count, int argc, char **argv,
                                 int *operands, struct aster_error *error)
{
    struct parser parser;
    prepare(&parser, groups, group_count);
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, parser.letters, parser.long_options, NULL);
        if (code == -1) {
            break;
        }
        if (code == '?' || code == ':') {
            return refuse(&parser, code, argv, error);
        }
        int i = find(&parser, code);
        aster_status status = store(parser.known[i], parser.destination[i], optarg, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    *operands = optind;
    return ASTER_OK;
}

void aster_options_help(const struct aster_option *options, FILE *out)
{
    for (; options->name != NULL; options++) {
        if (options->help == NULL) {
            continue;
        }
        char left[64];
        char letter[8] = "    ";
        if (options->letter != '\0') {
            snprintf(letter, sizeof letter, "-%c, ", options->letter);
        }
        int length = snprintf(left, sizeof left, "  %s--%s%s%s", letter, options->name,
                              options->argument != NULL ? " " : "", options->argument != NULL ? options->argument : "");
        if (length >= HELP_COLUMN) {
            fprintf(out, "%s\n%*s%s\n", left, HELP_COLUMN, "", options->help);
        } else {
            fprintf(out, "%-*s%s\n", HELP_COLUMN, left, options->help);
        }
    }
}
