#include "grantor/settings_check.h"

#include <string.h>

#include "base/error.h"
#include "grantor/cfg.h"
#include "grantor/http.h"

#define IN_FLIGHT_LEAST 1024 /* one message may carry so many renewals */
#define IN_FLIGHT_MOST 4194304
#define CONNECTIONS_MOST 10000
#define IDLE_LEAST_MS 10000 /* clients break their silence every 5 s */
#define DRAIN_LEAST_MS 100
#define IDLE_MOST_MS 600000

static bool is_sqlite(const char *place)
{
    return strncmp(place, "sqlite:", 7) == 0 && place[7] != '\0';
}

static bool is_journal(const char *journal)
{
    return strcmp(journal, "none") == 0 || is_sqlite(journal);
}

static int check_journal(cfg_t *cfg, cfg_opt_t *option)
{
    const char *journal = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    if (journal == NULL || is_journal(journal)) {
        return 0;
    }
    cfg_error(cfg, "journal is \"%.100s\": write \"sqlite:PATH\" or \"none\"", journal);
    return -1;
}

static int check_store(cfg_t *cfg, cfg_opt_t *option)
{
    const char *store = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    if (store == NULL || is_sqlite(store)) {
        return 0;
    }
    cfg_error(cfg, "store is \"%.100s\": write \"sqlite:PATH\", or journal = \"none\" to keep nothing", store);
    return -1;
}

static int check_log_format(cfg_t *cfg, cfg_opt_t *option)
{
    const char *name = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    enum grantor_log_format format;
    if (name != NULL && grantor_log_format_named(name, &format)) {
        return 0;
    }
    cfg_error(cfg, "log-format is \"%.100s\": write \"logfmt\" or \"json\"", name != NULL ? name : "");
    return -1;
}

static int check_range(cfg_t *cfg, cfg_opt_t *option, long least, long most)
{
    long value = cfg_opt_getnint(option, 0);
    if (value >= least && value <= most) {
        return 0;
    }
    cfg_error(cfg, "%s is %ld: it must be %ld to %ld", cfg_opt_name(option), value, least, most);
    return -1;
}

static int check_in_flight(cfg_t *cfg, cfg_opt_t *option)
{
    return check_range(cfg, option, IN_FLIGHT_LEAST, IN_FLIGHT_MOST);
}

static int check_connections(cfg_t *cfg, cfg_opt_t *option)
{
    return check_range(cfg, option, 1, CONNECTIONS_MOST);
}

static int check_idle(cfg_t *cfg, cfg_opt_t *option)
{
    return check_range(cfg, option, IDLE_LEAST_MS, IDLE_MOST_MS);
}

static int check_drain(cfg_t *cfg, cfg_opt_t *option)
{
    return check_range(cfg, option, DRAIN_LEAST_MS, IDLE_MOST_MS);
}

static int check_listen(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_address_check(cfg_opt_getnstr(option, cfg_opt_size(option) - 1), &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "%s: %s", cfg_opt_name(option), error.message);
    return -1;
}

static int check_http(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_address address;
    if (grantor_http_resolve(cfg_opt_getnstr(option, 0), &address, &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "http: %s", error.message);
    return -1;
}

static int check_role(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_role_check(aster_text(cfg_opt_getnstr(option, 0)), &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "%s: %s; leave the line out when it needs none", cfg_opt_name(option), error.message);
    return -1;
}

void grantor_settings_checks(cfg_t *cfg)
{
    cfg_set_validate_func(cfg, "journal", check_journal);
    cfg_set_validate_func(cfg, "store", check_store);
    cfg_set_validate_func(cfg, "listen|quic", check_listen);
    cfg_set_validate_func(cfg, "listen|tcp", check_listen);
    cfg_set_validate_func(cfg, "http", check_http);
    cfg_set_validate_func(cfg, "log-format", check_log_format);
    cfg_set_validate_func(cfg, "in-flight-max", check_in_flight);
    cfg_set_validate_func(cfg, "in-flight-total-max", check_in_flight);
    cfg_set_validate_func(cfg, "connections-per-node-max", check_connections);
    cfg_set_validate_func(cfg, "idle-timeout-ms", check_idle);
    cfg_set_validate_func(cfg, "drain-timeout-ms", check_drain);
    grantor_cfg_check_nodes(cfg);
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        char name[32];
        if (aster_verb_name(verb) != NULL) {
            snprintf(name, sizeof name, "requires|%s", aster_verb_name(verb));
            cfg_set_validate_func(cfg, name, check_role);
        }
    }
}

/* Where decisions are kept: one place, and one that is known. */
static aster_status check_place(const struct grantor_settings *settings, const char *path, struct aster_error *error)
{
    const char *journal = settings->journal;
    const char *store = settings->store;
    if ((journal == NULL) == (store == NULL)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s: %s: write journal = \"sqlite:/var/lib/aster/journal.db\", or \"none\" to keep "
                               "nothing; or store = \"sqlite:PATH\" to share a file with programs of this host",
                               path,
                               journal == NULL ? "journal is missing, where decisions are kept"
                                               : "there is a journal and a store, but decisions are kept in one place");
    }
    if (journal != NULL ? !is_journal(journal) : !is_sqlite(store)) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s: %s is \"%.100s\": write sqlite:PATH%s", path,
                               journal != NULL ? "journal" : "store", journal != NULL ? journal : store,
                               journal != NULL ? " or none" : "");
    }
    return ASTER_OK;
}

aster_status grantor_settings_whole(const struct grantor_settings *settings, const struct grantor_place *place,
                                    const char *path, struct aster_error *error)
{
    bool files = settings->key != NULL || settings->certificate != NULL || settings->roots != NULL;
    bool all_files = settings->key != NULL && settings->certificate != NULL && settings->roots != NULL;
    bool by_command = place->journal != NULL || place->store != NULL;
    aster_status status = check_place(settings, by_command ? "the command line" : path, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (settings->quic.count + settings->tcp.count == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s: nothing to listen at: write listen { quic = {\"0.0.0.0:7400\"} }", path);
    }
    if (files ? settings->node_directory != NULL || !all_files : settings->node_directory == NULL) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "%s: who am I? Write either node-directory (key mode), or key, certificate and roots (CA mode)", path);
    }
    return grantor_settings_fit(settings, &settings->nodes, path, error);
}

aster_status grantor_settings_fit(const struct grantor_settings *settings, const struct grantor_nodes *nodes,
                                  const char *path, struct aster_error *error)
{
    bool key_mode = settings->node_directory != NULL;
    for (size_t i = 0; i < nodes->count; i++) {
        if (aster_node_id_is_key(aster_text(nodes->items[i].id)) != key_mode) {
            return aster_error_set(error, ASTER_ERR_INVALID, "%s: node \"%s\" is not an identity of %s mode", path,
                                   nodes->items[i].id, key_mode ? "key" : "CA");
        }
    }
    return ASTER_OK;
}
