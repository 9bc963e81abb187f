#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/grantor.h"
#include "base/error.h"
#include "cli/grantor/grantor.h"
#include "cli/grantor/place.h"
#include "quic/credentials.h"

aster_status aster_node_place_find(const char *node, struct aster_node_place *place, struct aster_error *error)
{
    const char *named = node != NULL ? node : getenv("ASTER_NODE");
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int length;
    if (named != NULL && named[0] != '\0') {
        length = snprintf(place->directory, sizeof place->directory, "%s", named);
    } else if (config != NULL && config[0] == '/') {
        length = snprintf(place->directory, sizeof place->directory, "%s/aster/node", config);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(place->directory, sizeof place->directory, "%s/.config/aster/node", home);
    } else {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "neither XDG_CONFIG_HOME nor HOME names a directory: name the node's with --node");
    }
    if (length < 0 || (size_t)length >= sizeof place->directory) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the name of the node's directory is longer than %d bytes",
                               ASTER_NODE_PATH_MAX - 1);
    }
    snprintf(place->roots, sizeof place->roots, "%s/roots.pem", place->directory);
    if (access(place->roots, F_OK) != 0) {
        place->roots[0] = '\0';
    }
    return ASTER_OK;
}

static aster_status find(const char *node, struct aster_node_place *place, struct aster_node_paths *paths,
                         struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    aster_status status = aster_node_place_find(node, place, error);
    if (status == ASTER_OK) {
        status = aster_node_paths(place->directory, paths, error);
    }
    if (status == ASTER_OK && access(paths->key, F_OK) != 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "there is no node in %s yet: `aster node new NAME` makes one, or name one with --node",
                                 aster_printable(aster_text(place->directory), shown));
    }
    return status;
}

/* Of what the connection goes through only this concerns a user: that it goes over TCP, which costs speed and may be a
 * firewall's fault; and, once, why nothing happens. The first failure may be the last: then the command's own line says
 * it. */
static void say(enum aster_grantor_event event, const char *line, void *user)
{
    static atomic_uint failures;
    (void)user;
    if (event == ASTER_GRANTOR_FELL_BACK) {
        fprintf(stderr, "aster: %s\n", line);
    } else if (event == ASTER_GRANTOR_UNREACHABLE && atomic_fetch_add(&failures, 1) == 1) {
        fprintf(stderr, "aster: %s; still trying\n", line);
    }
}

aster_status aster_cli_grantor_open(const char *store, const char *node, struct aster_serializer **serializer,
                                    struct aster_error *error)
{
    struct aster_node_place place;
    struct aster_node_paths paths;
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    aster_status status = find(node, &place, &paths, error);
    if (status != ASTER_OK) {
        return status;
    }
    options.log = say;
    options.addresses = store + strlen(ASTER_GRANTOR_SCHEME);
    if (place.roots[0] == '\0') {
        options.node = place.directory;
    } else {
        options.key = paths.key;
        options.certificate = paths.certificate;
        options.roots = place.roots;
    }
    return aster_grantor_open(&options, serializer, error);
}

aster_status aster_cli_grantor_identity(const char *node, char identity[ASTER_IDENTITY_MAX + 1],
                                        struct aster_error *error)
{
    struct aster_node_place place;
    struct aster_node_paths paths;
    struct aster_credentials *credentials = NULL;
    aster_status status = find(node, &place, &paths, error);
    if (status != ASTER_OK) {
        return status;
    }
    const struct aster_credentials_files files = {paths.key, paths.certificate,
                                                  place.roots[0] != '\0' ? place.roots : NULL};
    status = aster_credentials_load(&files, &credentials, error);
    if (status == ASTER_OK) {
        struct aster_bytes own = aster_credentials_identity(credentials);
        memcpy(identity, own.data, own.size);
        identity[own.size] = '\0';
        aster_credentials_unref(credentials);
    }
    return status;
}
