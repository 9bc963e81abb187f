/* The configuration file of asterd, read and checked. Not thread-safe: libconfuse keeps its scanner in static storage.
 */
#ifndef GRANTOR_SETTINGS_H
#define GRANTOR_SETTINGS_H

#include <stdint.h>

#include "aster/operation.h"
#include "grantor/log.h"

#define GRANTOR_VERBS 12 /* the numbers of aster_operation_kind, then list, history and watch */
enum grantor_verb { GRANTOR_LIST = 9, GRANTOR_HISTORY = 10, GRANTOR_WATCH = 11 };

struct grantor_texts {
    char **items;
    size_t count;
};

/* One peer that is admitted. */
struct grantor_node {
    char *id;   /* the identity: a node id in key mode, a SPIFFE id in CA mode */
    char *name; /* display only */
    struct grantor_texts roles;
    struct grantor_texts resources; /* prefixes of the names it may use; none = all */
};

struct grantor_settings {
    char *journal;        /* "sqlite:PATH" or "none"; NULL when store is given. Default: in $STATE_DIRECTORY */
    char *store;          /* "sqlite:PATH"; NULL when journal is given */
    char *node_directory; /* key mode; NULL in CA mode */
    char *key;            /* CA mode: PEM files */
    char *certificate;
    char *roots;
    struct grantor_texts quic; /* addresses to listen at */
    struct grantor_texts tcp;
    char *requires[GRANTOR_VERBS]; /* the role that a verb needs, NULL = none */
    struct grantor_node *nodes;    /* ascending by id */
    size_t node_count;
    char *http; /* loopback address of metrics and health; NULL = none */
    enum grantor_log_format log_format;
    size_t in_flight_max;       /* operations of one identity that may be unanswered */
    size_t in_flight_total_max; /* of all identities */
    size_t connections_max;     /* of one identity */
    int64_t idle_timeout_ms;
    int64_t drain_timeout_ms; /* how long the end waits for what is in flight */
};

/* "acquire" ... "watch"; NULL for a number without a verb. */
const char *grantor_verb_name(int verb);

/* Errors: ASTER_ERR_INVALID with file, line, what is wrong and what to do next; ASTER_ERR_IO; ASTER_ERR_NOMEM. */
aster_status grantor_settings_read(const char *path, struct grantor_settings **settings, struct aster_error *error);
/* Instead of what the file says about both, either of which may be NULL here, but not both. As the file's they are
 * checked. Errors: ASTER_ERR_INVALID, ASTER_ERR_NOMEM. */
aster_status grantor_settings_keep_in(struct grantor_settings *settings, const char *journal, const char *store,
                                      struct aster_error *error);
void grantor_settings_destroy(struct grantor_settings *settings); /* NULL is legal */

#endif
