#include "grantor/settings_check.h"

#include <string.h>

#include "aster/limits.h"
#include "base/error.h"

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

static int check_role(cfg_t *cfg, cfg_opt_t *option)
{
    const char *role = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    if (role != NULL && role[0] != '\0') {
        return 0;
    }
    cfg_error(cfg, "%s has an empty role: name one, or leave the line out", cfg_opt_name(option));
    return -1;
}

static bool is_node_id(const char *id)
{
    return strlen(id) == 64 && strspn(id, "0123456789abcdef") == 64;
}

static int check_node(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error;
    const char *id = cfg_title(cfg_opt_getnsec(option, cfg_opt_size(option) - 1));
    if (!is_node_id(id) && strncmp(id, "spiffe://", 9) != 0) {
        cfg_error(
            cfg,
            "node \"%.80s\": an id is 64 lower-case hexadecimal digits (aster node id), or a spiffe:// id in CA mode",
            id);
        return -1;
    }
    if (aster_identity_check(aster_text(id), "node", &error) != ASTER_OK) {
        cfg_error(cfg, "%s", error.message);
        return -1;
    }
    return 0;
}

static int check_prefix(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error;
    const char *prefix = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    if (aster_resource_check(aster_text(prefix), &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "a prefix in resources: %s", error.message);
    return -1;
}

void grantor_settings_checks(cfg_t *cfg)
{
    cfg_set_validate_func(cfg, "journal", check_journal);
    cfg_set_validate_func(cfg, "store", check_store);
    cfg_set_validate_func(cfg, "log-format", check_log_format);
    cfg_set_validate_func(cfg, "in-flight-max", check_in_flight);
    cfg_set_validate_func(cfg, "in-flight-total-max", check_in_flight);
    cfg_set_validate_func(cfg, "connections-per-node-max", check_connections);
    cfg_set_validate_func(cfg, "idle-timeout-ms", check_idle);
    cfg_set_validate_func(cfg, "drain-timeout-ms", check_drain);
    cfg_set_validate_func(cfg, "node", check_node);
    cfg_set_validate_func(cfg, "node|roles", check_role);
    cfg_set_validate_func(cfg, "node|resources", check_prefix);
    for (int verb = 0; verb < GRANTOR_VERBS; verb++) {
        char name[32];
        if (grantor_verb_name(verb) != NULL) {
            snprintf(name, sizeof name, "requires|%s", grantor_verb_name(verb));
            cfg_set_validate_func(cfg, name, check_role);
        }
    }
}

aster_status grantor_settings_check_place(const struct grantor_settings *settings, const char *path,
                                          struct aster_error *error)
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

aster_status grantor_settings_whole(const struct grantor_settings *settings, const char *path,
                                    struct aster_error *error)
{
    bool files = settings->key != NULL || settings->certificate != NULL || settings->roots != NULL;
    bool all_files = settings->key != NULL && settings->certificate != NULL && settings->roots != NULL;
    aster_status status = grantor_settings_check_place(settings, path, error);
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
    for (size_t i = 0; i < settings->node_count; i++) {
        if (is_node_id(settings->nodes[i].id) == files) {
            return aster_error_set(error, ASTER_ERR_INVALID, "%s: node \"%s\" is not an identity of %s mode", path,
                                   settings->nodes[i].id, files ? "CA" : "key");
        }
    }
    return ASTER_OK;
}
