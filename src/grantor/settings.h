/* The configuration file of asterd, read and checked. Not thread-safe: libconfuse keeps its scanner in static storage.
 */
#ifndef GRANTOR_SETTINGS_H
#define GRANTOR_SETTINGS_H

#include <stdint.h>

#include "grantor/log.h"
#include "grantor/nodes.h"

struct grantor_settings {
    char *journal;        /* "sqlite:PATH" or "none"; NULL when store is given. Default: in $STATE_DIRECTORY */
    char *store;          /* "sqlite:PATH"; NULL when journal is given */
    char *node_directory; /* key mode; NULL in CA mode */
    char *key;            /* CA mode: PEM files */
    char *certificate;
    char *roots;
    struct grantor_texts quic; /* addresses to listen at */
    struct grantor_texts tcp;
    char *requires[ASTER_VERBS]; /* the role that a verb needs, NULL = none */
    struct grantor_nodes nodes;
    char *nodes_file; /* where what operators change is kept; NULL = beside the journal or store, if that is a file */
    char *http;       /* loopback address of metrics and health; NULL = none */
    enum grantor_log_format log_format;
    size_t in_flight_max;       /* operations of one identity that may be unanswered */
    size_t in_flight_total_max; /* of all identities */
    size_t connections_max;     /* of one identity */
    int64_t idle_timeout_ms;
    int64_t drain_timeout_ms; /* how long the end waits for what is in flight */
};

/* Where decisions are kept, instead of what the file says of journal and store; both NULL = as the file says. */
struct grantor_place {
    const char *journal;
    const char *store;
};

/* Errors: ASTER_ERR_INVALID with file, line, what is wrong and what to do next; ASTER_ERR_IO; ASTER_ERR_NOMEM. */
aster_status grantor_settings_read(const char *path, const struct grantor_place *place,
                                   struct grantor_settings **settings, struct aster_error *error);
void grantor_settings_destroy(struct grantor_settings *settings); /* NULL is legal */

/* The path of the file that keeps what operators change, in malloc's memory; *path is NULL when there is no place for
 * one. Errors: ASTER_ERR_NOMEM. */
aster_status grantor_settings_nodes_file(const struct grantor_settings *settings, char **path,
                                         struct aster_error *error);

/* Are these identities of the mode (key or CA) that is configured? `path` is the file that lists them. Errors:
 * ASTER_ERR_INVALID. */
aster_status grantor_settings_fit(const struct grantor_settings *settings, const struct grantor_nodes *nodes,
                                  const char *path, struct aster_error *error);

#endif
