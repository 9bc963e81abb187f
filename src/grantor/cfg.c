#include "grantor/cfg.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aster/limits.h"
#include "base/error.h"

/* libconfuse's error function has no user pointer. */
static struct {
    struct aster_error *error; /* NULL = nobody is parsing */
    const char *path;
    const char *hint;
} report_to;

static void report(cfg_t *cfg, const char *format, va_list arguments)
{
    char text[ASTER_ERROR_MESSAGE_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    if (report_to.error != NULL && report_to.error->status == ASTER_OK) { /* the first is the cause */
        aster_error_set(report_to.error, ASTER_ERR_INVALID, "%s:%d: %s; %s", report_to.path,
                        cfg != NULL ? cfg->line : 0, text, report_to.hint);
    }
}

/* The end of the comment that begins here, or NULL. Slashes within a word begin none. */
static char *comment_end(char *at, bool in_word)
{
    if (at[0] == '/' && at[1] == '*' && !in_word) {
        char *end = strstr(at + 2, "*/");
        return end != NULL ? end + 2 : NULL; /* one without an end is libconfuse's to complain about */
    }
    bool begins = at[0] == '#' || (at[0] == '/' && at[1] == '/' && !in_word);
    return begins ? at + strcspn(at, "\n") : NULL;
}

static char *string_end(char *at)
{
    char quote = *at++;
    while (*at != '\0' && *at != quote) {
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return *at == quote ? at + 1 : at;
}

/* libconfuse 3.3 counts the line of a comment twice, so that every message behind one would name the wrong line. */
static void blank_comments(char *text)
{
    static const char delimiters[] = " \t\r\n{}(),=+\"'";
    char *at = text;
    while (*at != '\0') {
        char *end = comment_end(at, at > text && strchr(delimiters, at[-1]) == NULL);
        if (end != NULL) {
            for (; at < end; at++) {
                *at = *at == '\n' ? '\n' : ' ';
            }
        } else {
            at = *at == '"' || *at == '\'' ? string_end(at) : at + 1;
        }
    }
}

/* libconfuse closes at the end of the file whatever is still open: a file that was cut off would be believed. Returns
 * the line of the brace that nobody closed, or 0. */
static int unclosed_line(char *text)
{
    int line = 1;
    int depth = 0;
    int opened = 0;
    char *at = text;
    while (*at != '\0') {
        char *next = *at == '"' || *at == '\'' ? string_end(at) : at + 1;
        if (*at == '{' && depth++ == 0) {
            opened = line;
        } else if (*at == '}') {
            depth--;
        }
        for (; at < next; at++) {
            line += *at == '\n';
        }
    }
    return depth > 0 ? opened : 0;
}

aster_status grantor_cfg_parse(cfg_t *cfg, const char *path, char *text, const char *hint, struct aster_error *error)
{
    struct aster_error found = ASTER_ERROR_INIT;
    blank_comments(text);
    cfg_set_error_function(cfg, report);
    report_to.error = &found;
    report_to.path = path;
    report_to.hint = hint;
    int code = cfg_parse_buf(cfg, text);
    report_to.error = NULL;
    if (code != CFG_SUCCESS) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s",
                               found.status != ASTER_OK ? found.message : "the configuration cannot be understood");
    }
    int line = unclosed_line(text);
    if (line > 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s:%d: nothing closes the brace that is opened here; %s",
                               path, line, hint);
    }
    return ASTER_OK;
}

/* What is wrong, as libconfuse wants to hear it. */
static int judge(cfg_t *cfg, cfg_opt_t *option, aster_status status, const struct aster_error *error)
{
    if (status != ASTER_OK) {
        cfg_error(cfg, "%s: %s", cfg_opt_name(option), error->message);
        return -1;
    }
    return 0;
}

static int check_id(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const char *id = cfg_title(cfg_opt_getnsec(option, cfg_opt_size(option) - 1));
    return judge(cfg, option, aster_node_id_check(aster_text(id), &error), &error);
}

static int check_name(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    return judge(cfg, option, aster_node_name_check(aster_text(cfg_opt_getnstr(option, 0)), &error), &error);
}

static int check_count(cfg_t *cfg, cfg_opt_t *option, unsigned most)
{
    if (cfg_opt_size(option) <= most) {
        return 0;
    }
    cfg_error(cfg, "%s lists more than %u: shorten the list", cfg_opt_name(option), most);
    return -1;
}

static struct aster_bytes last_of(cfg_opt_t *option)
{
    return aster_text(cfg_opt_getnstr(option, cfg_opt_size(option) - 1));
}

static int check_roles(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    int code = judge(cfg, option, aster_role_check(last_of(option), &error), &error);
    return code == 0 ? check_count(cfg, option, ASTER_NODE_ROLES_MAX) : code;
}

static int check_resources(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_resource_check(last_of(option), &error) != ASTER_OK) {
        cfg_error(cfg, "a prefix in resources: %s", error.message);
        return -1;
    }
    return check_count(cfg, option, ASTER_NODE_RESOURCES_MAX);
}

void grantor_cfg_check_nodes(cfg_t *cfg)
{
    cfg_set_validate_func(cfg, "node", check_id);
    cfg_set_validate_func(cfg, "node|name", check_name);
    cfg_set_validate_func(cfg, "node|roles", check_roles);
    cfg_set_validate_func(cfg, "node|resources", check_resources);
}

char *grantor_cfg_text(cfg_t *cfg, const char *option, bool *failed)
{
    const char *text = cfg_getstr(cfg, option);
    char *copy = text != NULL ? strdup(text) : NULL;
    *failed = *failed || (text != NULL && copy == NULL);
    return copy;
}

void grantor_cfg_texts(cfg_t *cfg, const char *option, struct grantor_texts *texts, bool *failed)
{
    unsigned count = cfg_size(cfg, option);
    for (unsigned i = 0; i < count && !*failed; i++) {
        *failed = !grantor_texts_add(texts, aster_text(cfg_getnstr(cfg, option, i)));
    }
}

void grantor_cfg_requires(cfg_t *cfg, char *requires[ASTER_VERBS], bool *failed)
{
    cfg_t *section = cfg_getsec(cfg, "requires");
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        if (aster_verb_name(verb) != NULL) {
            requires[verb] = grantor_cfg_text(section, aster_verb_name(verb), failed);
        }
    }
}

void grantor_cfg_nodes(cfg_t *cfg, struct grantor_nodes *nodes, bool *failed)
{
    unsigned count = cfg_size(cfg, "node");
    nodes->items = count > 0 ? calloc(count, sizeof nodes->items[0]) : NULL;
    if (count > 0 && nodes->items == NULL) {
        *failed = true;
        return;
    }
    for (unsigned i = 0; i < count && !*failed; i++) {
        cfg_t *section = cfg_getnsec(cfg, "node", i);
        struct grantor_node *node = &nodes->items[i];
        nodes->count = i + 1;
        node->id = grantor_text_copy(aster_text(cfg_title(section)));
        node->name = grantor_cfg_text(section, "name", failed);
        grantor_cfg_texts(section, "roles", &node->roles, failed);
        grantor_cfg_texts(section, "resources", &node->resources, failed);
        *failed = *failed || node->id == NULL;
    }
    if (!*failed) {
        grantor_nodes_sort(nodes);
    }
}
