#include "grantor/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/cfg.h"
#include "grantor/settings_check.h"
#include "platform/private_file.h"

#define IN_FLIGHT_DEFAULT 65536
#define IN_FLIGHT_TOTAL_DEFAULT 1048576
#define CONNECTIONS_DEFAULT 256
#define IDLE_TIMEOUT_DEFAULT_MS 15000
#define DRAIN_TIMEOUT_DEFAULT_MS 10000
#define HINT "see asterd.conf(5)"
#define FILE_MAX_BYTES 67108864
#define NODES_FILE "nodes.conf"

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
    char *copy = strdup(journal);
    *failed = *failed || copy == NULL;
    return copy;
}

static void copy_place(cfg_t *cfg, const struct grantor_place *place, struct grantor_settings *settings, bool *failed)
{
    if (place->journal != NULL || place->store != NULL) {
        settings->journal = place->journal != NULL ? strdup(place->journal) : NULL;
        settings->store = place->store != NULL ? strdup(place->store) : NULL;
        *failed = *failed || (place->journal != NULL && settings->journal == NULL) ||
                  (place->store != NULL && settings->store == NULL);
        return;
    }
    settings->journal = grantor_cfg_text(cfg, "journal", failed);
    settings->store = grantor_cfg_text(cfg, "store", failed);
    if (settings->journal == NULL && settings->store == NULL) {
        settings->journal = journal_of_service(failed);
    }
}

static void copy_all(cfg_t *cfg, struct grantor_settings *settings, bool *failed)
{
    settings->node_directory = grantor_cfg_text(cfg, "node-directory", failed);
    settings->key = grantor_cfg_text(cfg, "key", failed);
    settings->certificate = grantor_cfg_text(cfg, "certificate", failed);
    settings->roots = grantor_cfg_text(cfg, "roots", failed);
    settings->http = grantor_cfg_text(cfg, "http", failed);
    settings->nodes_file = grantor_cfg_text(cfg, "nodes-file", failed);
    grantor_log_format_named(cfg_getstr(cfg, "log-format"), &settings->log_format);
    settings->in_flight_max = (size_t)cfg_getint(cfg, "in-flight-max");
    settings->in_flight_total_max = (size_t)cfg_getint(cfg, "in-flight-total-max");
    settings->connections_max = (size_t)cfg_getint(cfg, "connections-per-node-max");
    settings->idle_timeout_ms = cfg_getint(cfg, "idle-timeout-ms");
    settings->drain_timeout_ms = cfg_getint(cfg, "drain-timeout-ms");
    cfg_t *listen = cfg_getsec(cfg, "listen");
    grantor_cfg_texts(listen, "quic", &settings->quic, failed);
    grantor_cfg_texts(listen, "tcp", &settings->tcp, failed);
    grantor_cfg_requires(cfg, settings->requires, failed);
    grantor_cfg_nodes(cfg, &settings->nodes, failed);
}

static aster_status load(cfg_t *cfg, const char *path, struct aster_error *error)
{
    char *text = NULL;
    size_t size;
    struct aster_error cause = ASTER_ERROR_INIT;
    aster_status status = aster_private_file_read(path, FILE_MAX_BYTES, false, &text, &size, &cause);
    if (status != ASTER_OK) {
        return aster_error_set(error, status, "%.400s: name a readable file with --config", cause.message);
    }
    status = grantor_cfg_parse(cfg, path, text, HINT, error);
    free(text);
    return status;
}

aster_status grantor_settings_read(const char *path, const struct grantor_place *place,
                                   struct grantor_settings **settings, struct aster_error *error)
{
    cfg_opt_t listen[] = {CFG_STR_LIST("quic", "{}", CFGF_NONE), CFG_STR_LIST("tcp", "{}", CFGF_NONE), CFG_END()};
    cfg_opt_t node[] = GRANTOR_CFG_NODE;
    cfg_opt_t requires[] = {GRANTOR_CFG_REQUIRES, CFG_STR("revoke", "operator", CFGF_NONE), CFG_END()};
    cfg_opt_t options[] = {CFG_STR("journal", NULL, CFGF_NONE),
                           CFG_STR("store", NULL, CFGF_NONE),
                           CFG_STR("node-directory", NULL, CFGF_NONE),
                           CFG_STR("key", NULL, CFGF_NONE),
                           CFG_STR("certificate", NULL, CFGF_NONE),
                           CFG_STR("roots", NULL, CFGF_NONE),
                           CFG_STR("http", NULL, CFGF_NONE),
                           CFG_STR("nodes-file", NULL, CFGF_NONE),
                           CFG_STR("log-format", "logfmt", CFGF_NONE),
                           CFG_INT("in-flight-max", IN_FLIGHT_DEFAULT, CFGF_NONE),
                           CFG_INT("in-flight-total-max", IN_FLIGHT_TOTAL_DEFAULT, CFGF_NONE),
                           CFG_INT("connections-per-node-max", CONNECTIONS_DEFAULT, CFGF_NONE),
                           CFG_INT("idle-timeout-ms", IDLE_TIMEOUT_DEFAULT_MS, CFGF_NONE),
                           CFG_INT("drain-timeout-ms", DRAIN_TIMEOUT_DEFAULT_MS, CFGF_NONE),
                           CFG_SEC("listen", listen, CFGF_NONE),
                           CFG_SEC("requires", requires, CFGF_NONE),
                           CFG_SEC("node", node, GRANTOR_CFG_NODE_FLAGS),
                           CFG_END()};
    cfg_t *cfg = cfg_init(options, CFGF_NONE);
    struct grantor_settings *made = calloc(1, sizeof *made);
    if (cfg == NULL || made == NULL) {
        cfg_free(cfg);
        free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration");
    }
    grantor_settings_checks(cfg);
    bool failed = false;
    aster_status status = load(cfg, path, error);
    if (status == ASTER_OK) {
        copy_place(cfg, place, made, &failed);
        copy_all(cfg, made, &failed);
        status = failed ? aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration")
                        : grantor_settings_whole(made, place, path, error);
    }
    cfg_free(cfg);
    if (status != ASTER_OK) {
        grantor_settings_destroy(made);
        return status;
    }
    *settings = made;
    return ASTER_OK;
}

void grantor_settings_destroy(struct grantor_settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        free(settings->requires[verb]);
    }
    grantor_nodes_free(&settings->nodes);
    free(settings->nodes_file);
    grantor_texts_free(&settings->quic);
    grantor_texts_free(&settings->tcp);
    free(settings->journal);
    free(settings->store);
    free(settings->node_directory);
    free(settings->key);
    free(settings->certificate);
    free(settings->roots);
    free(settings->http);
    free(settings);
}

aster_status grantor_settings_nodes_file(const struct grantor_settings *settings, char **path,
                                         struct aster_error *error)
{
    static const char scheme[] = "sqlite:";
    const char *kept = settings->journal != NULL ? settings->journal : settings->store;
    const char *file = strncmp(kept, scheme, strlen(scheme)) == 0 ? kept + strlen(scheme) : NULL;
    if (settings->nodes_file == NULL && file == NULL) {
        *path = NULL;
        return ASTER_OK;
    }
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    int directory = settings->nodes_file == NULL && slash != NULL ? (int)(slash - file) + 1 : 0;
    if (asprintf(path, "%.*s%s", directory, directory > 0 ? file : "",
                 settings->nodes_file != NULL ? settings->nodes_file : NODES_FILE) < 0) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the configuration");
    }
    return ASTER_OK;
}
