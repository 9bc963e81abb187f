#include "grantor/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <confuse.h>

#include "base/error.h"
#include "grantor/settings_check.h"

#define IN_FLIGHT_DEFAULT 65536
#define IN_FLIGHT_TOTAL_DEFAULT 1048576
#define CONNECTIONS_DEFAULT 256
#define IDLE_TIMEOUT_DEFAULT_MS 15000
#define DRAIN_TIMEOUT_DEFAULT_MS 10000

static const char *const verbs[GRANTOR_VERBS] = {NULL,  "acquire", "renew",   "release", "revoke",  NULL,
                                                 "put", "forget",  "inspect", "list",    "history", "watch"};

/* libconfuse's error function has no user pointer. */
static struct aster_error *reported;

const char *grantor_verb_name(int verb)
{
    return verb >= 0 && verb < GRANTOR_VERBS ? verbs[verb] : NULL;
}

static void report(cfg_t *cfg, const char *format, va_list arguments)
{
    char text[ASTER_ERROR_MESSAGE_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    if (reported != NULL && reported->status == ASTER_OK) { /* the first is the cause */
        aster_error_set(reported, ASTER_ERR_INVALID, "%s:%d: %s; see asterd.conf(5)",
                        cfg != NULL && cfg->filename != NULL ? cfg->filename : "configuration",
                        cfg != NULL ? cfg->line : 0, text);
    }
}

static char *copy_text(const char *text, bool *failed)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    *failed = *failed || (text != NULL && copy == NULL);
    return copy;
}

static void copy_texts(cfg_t *cfg, const char *option, struct grantor_texts *texts, bool *failed)
{
    unsigned count = cfg_size(cfg, option);
    texts->items = count > 0 ? calloc(count, sizeof texts->items[0]) : NULL;
    if (count > 0 && texts->items == NULL) {
        *failed = true;
        return;
    }
    texts->count = count;
    for (unsigned i = 0; i < count; i++) {
        texts->items[i] = copy_text(cfg_getnstr(cfg, option, i), failed);
    }
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct grantor_node *)a)->id, ((const struct grantor_node *)b)->id);
}

static void copy_nodes(cfg_t *cfg, struct grantor_settings *settings, bool *failed)
{
    unsigned count = cfg_size(cfg, "node");
    settings->nodes = count > 0 ? calloc(count, sizeof settings->nodes[0]) : NULL;
    if (count > 0 && settings->nodes == NULL) {
        *failed = true;
        return;
    }
    settings->node_count = count;
    for (unsigned i = 0; i < count; i++) {
        cfg_t *section = cfg_getnsec(cfg, "node", i);
        struct grantor_node *node = &settings->nodes[i];
        node->id = copy_text(cfg_title(section), failed);
        node->name = copy_text(cfg_getstr(section, "name"), failed);
        copy_texts(section, "roles", &node->roles, failed);
        copy_texts(section, "resources", &node->resources, failed);
    }
    if (!*failed && count > 0) {
        qsort(settings->nodes, count, sizeof settings->nodes[0], compare_nodes);
    }
}

/* A service has a place of its own for what it keeps: systemd's StateDirectory=. */
static char *journal_of_service(bool *failed)
{
    char journal[4096];
    const char *directory = getenv("STATE_DIRECTORY");
    size_t size = directory != NULL ? strcspn(directory, ":") : 0; /* the first of several */
    if (size == 0 || size > sizeof journal - 32) {
        return NULL;
    }
    snprintf(journal, sizeof journal, "sqlite:%.*s/journal.db", (int)size, directory);
    return copy_text(journal, failed);
}

static void copy_all(cfg_t *cfg, struct grantor_settings *settings, bool *failed)
{
    settings->journal = copy_text(cfg_getstr(cfg, "journal"), failed);
    settings->store = copy_text(cfg_getstr(cfg, "store"), failed);
    if (settings->journal == NULL && settings->store == NULL) {
        settings->journal = journal_of_service(failed);
    }
    settings->node_directory = copy_text(cfg_getstr(cfg, "node-directory"), failed);
    settings->key = copy_text(cfg_getstr(cfg, "key"), failed);
    settings->certificate = copy_text(cfg_getstr(cfg, "certificate"), failed);
    settings->roots = copy_text(cfg_getstr(cfg, "roots"), failed);
    settings->http = copy_text(cfg_getstr(cfg, "http"), failed);
    grantor_log_format_named(cfg_getstr(cfg, "log-format"), &settings->log_format);
    settings->in_flight_max = (size_t)cfg_getint(cfg, "in-flight-max");
    settings->in_flight_total_max = (size_t)cfg_getint(cfg, "in-flight-total-max");
    settings->connections_max = (size_t)cfg_getint(cfg, "connections-per-node-max");
    settings->idle_timeout_ms = cfg_getint(cfg, "idle-timeout-ms");
    settings->drain_timeout_ms = cfg_getint(cfg, "drain-timeout-ms");
    cfg_t *listen = cfg_getsec(cfg, "listen");
    copy_texts(listen, "quic", &settings->quic, failed);
    copy_texts(listen, "tcp", &settings->tcp, failed);
    cfg_t *requires = cfg_getsec(cfg, "requires");
    for (int verb = 0; verb < GRANTOR_VERBS; verb++) {
        if (verbs[verb] != NULL) {
            settings->requires[verb] = copy_text(cfg_getstr(requires, verbs[verb]), failed);
        }
    }
    copy_nodes(cfg, settings, failed);
}

static aster_status parse(cfg_t *cfg, const char *path, struct aster_error *error)
{
    struct aster_error found = ASTER_ERROR_INIT;
    reported = &found;
    int code = cfg_parse(cfg, path);
    reported = NULL;
    if (code == CFG_FILE_ERROR) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "%s cannot be read: name a file with --config", path);
    }
    if (code != CFG_SUCCESS) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s",
                               found.status != ASTER_OK ? found.message : "the configuration cannot be understood");
    }
    return ASTER_OK;
}

aster_status grantor_settings_read(const char *path, struct grantor_settings **settings, struct aster_error *error)
{
    cfg_opt_t listen[] = {CFG_STR_LIST("quic", "{}", CFGF_NONE), CFG_STR_LIST("tcp", "{}", CFGF_NONE), CFG_END()};
    cfg_opt_t node[] = {CFG_STR("name", NULL, CFGF_NONE), CFG_STR_LIST("roles", "{}", CFGF_NONE),
                        CFG_STR_LIST("resources", "{}", CFGF_NONE), CFG_END()};
    cfg_opt_t requires[] = {CFG_STR("acquire", NULL, CFGF_NONE),
                            CFG_STR("renew", NULL, CFGF_NONE),
                            CFG_STR("release", NULL, CFGF_NONE),
                            CFG_STR("put", NULL, CFGF_NONE),
                            CFG_STR("forget", NULL, CFGF_NONE),
                            CFG_STR("inspect", NULL, CFGF_NONE),
                            CFG_STR("list", NULL, CFGF_NONE),
                            CFG_STR("history", NULL, CFGF_NONE),
                            CFG_STR("watch", NULL, CFGF_NONE),
                            CFG_STR("revoke", "operator", CFGF_NONE),
                            CFG_END()};
    cfg_opt_t options[] = {CFG_STR("journal", NULL, CFGF_NONE),
                           CFG_STR("store", NULL, CFGF_NONE),
                           CFG_STR("node-directory", NULL, CFGF_NONE),
                           CFG_STR("key", NULL, CFGF_NONE),
                           CFG_STR("certificate", NULL, CFGF_NONE),
                           CFG_STR("roots", NULL, CFGF_NONE),
                           CFG_STR("http", NULL, CFGF_NONE),
                           CFG_STR("log-format", "logfmt", CFGF_NONE),
                           CFG_INT("in-flight-max", IN_FLIGHT_DEFAULT, CFGF_NONE),
                           CFG_INT("in-flight-total-max", IN_FLIGHT_TOTAL_DEFAULT, CFGF_NONE),
                           CFG_INT("connections-per-node-max", CONNECTIONS_DEFAULT, CFGF_NONE),
                           CFG_INT("idle-timeout-ms", IDLE_TIMEOUT_DEFAULT_MS, CFGF_NONE),
                           CFG_INT("drain-timeout-ms", DRAIN_TIMEOUT_DEFAULT_MS, CFGF_NONE),
                           CFG_SEC("listen", listen, CFGF_NONE),
                           CFG_SEC("requires", requires, CFGF_NONE),
                           CFG_SEC("node", node, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
                           CFG_END()};
    cfg_t *cfg = cfg_init(options, CFGF_NONE);
    struct grantor_settings *made = calloc(1, sizeof *made);
    if (cfg == NULL || made == NULL) {
        cfg_free(cfg);
        free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration");
    }
    cfg_set_error_function(cfg, report);
    grantor_settings_checks(cfg);
    bool failed = false;
    aster_status status = parse(cfg, path, error);
    if (status == ASTER_OK) {
        copy_all(cfg, made, &failed);
        status = failed ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration")
                        : grantor_settings_whole(made, path, error);
    }
    cfg_free(cfg);
    if (status != ASTER_OK) {
        grantor_settings_destroy(made);
        return status;
    }
    *settings = made;
    return ASTER_OK;
}

aster_status grantor_settings_keep_in(struct grantor_settings *settings, const char *journal, const char *store,
                                      struct aster_error *error)
{
    bool failed = false;
    free(settings->journal);
    free(settings->store);
    settings->journal = copy_text(journal, &failed);
    settings->store = copy_text(store, &failed);
    return failed ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration")
                  : grantor_settings_check_place(settings, "the command line", error);
}

static void free_texts(struct grantor_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
}

void grantor_settings_destroy(struct grantor_settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; i < settings->node_count; i++) {
        free(settings->nodes[i].id);
        free(settings->nodes[i].name);
        free_texts(&settings->nodes[i].roles);
        free_texts(&settings->nodes[i].resources);
    }
    for (int verb = 0; verb < GRANTOR_VERBS; verb++) {
        free(settings->requires[verb]);
    }
    free(settings->nodes);
    free_texts(&settings->quic);
    free_texts(&settings->tcp);
    free(settings->journal);
    free(settings->store);
    free(settings->node_directory);
    free(settings->key);
    free(settings->certificate);
    free(settings->roots);
    free(settings->http);
    free(settings);
}
