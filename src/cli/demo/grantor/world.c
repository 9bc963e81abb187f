#include "cli/demo/grantor/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "aster/grantor.h"
#include "base/error.h"
#include "cli/demo/grantor/asterd.h"

#define CERTIFICATE_DAYS 1

static const char *const node_names[DEMO_NODES] = {"worker-A", "worker-B", "operator", "stranger"};

static aster_status join(const char *directory, const char *name, char path[DEMO_PATH_MAX], struct aster_error *error)
{
    int length = snprintf(path, DEMO_PATH_MAX, "%s/%s", directory, name);
    if (length < 0 || length >= DEMO_PATH_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the output directory's path is too long; use a shorter --out");
    }
    return ASTER_OK;
}

static aster_status make_directory(const char *path, struct aster_error *error)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make a directory for the demo's keys");
    }
    return ASTER_OK;
}

static aster_status make_nodes(struct demo_grantor *grantor, char server[DEMO_PATH_MAX], struct aster_error *error)
{
    aster_status status = make_directory(grantor->directory, error);
    for (int i = 0; i < DEMO_NODES && status == ASTER_OK; i++) {
        status = join(grantor->directory, node_names[i], grantor->node[i], error);
        if (status == ASTER_OK) {
            status = aster_node_create(grantor->node[i], node_names[i], CERTIFICATE_DAYS, grantor->id[i], error);
        }
    }
    if (status == ASTER_OK) {
        status = join(grantor->directory, "asterd", server, error);
    }
    if (status == ASTER_OK) {
        status = aster_node_create(server, "asterd", CERTIFICATE_DAYS, grantor->server_id, error);
    }
    return status;
}

/* The stranger has a key as good as any, and is not in it. */
static aster_status write_config(const struct demo_grantor *grantor, const char *path, const char *server,
                                 struct aster_error *error)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write the configuration of asterd");
    }
    fprintf(file,
            "journal = \"sqlite:%s/journal.db\"\n"
            "node-directory = \"%s\"\n"
            "listen {\n  quic = {\"127.0.0.1:0\"}\n}\n"
            "node \"%s\" { name = \"worker-A\" }\n"
            "node \"%s\" { name = \"worker-B\" }\n"
            "node \"%s\" {\n  name = \"operator\"\n  roles = {\"operator\"}\n}\n",
            grantor->directory, server, grantor->id[DEMO_NODE_A], grantor->id[DEMO_NODE_B],
            grantor->id[DEMO_NODE_OPERATOR]);
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write the configuration of asterd");
    }
    return ASTER_OK;
}

static void name_addresses(struct demo_grantor *grantor)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    snprintf(grantor->direct, sizeof grantor->direct, "%s@%s", grantor->server_id,
             aster_address_text(&grantor->address, text));
    snprintf(grantor->relayed, sizeof grantor->relayed, "%s@%s", grantor->server_id,
             aster_address_text(&grantor->relay.address, text));
}

aster_status aster_demo_grantor_open(const struct demo_stage *stage, struct demo_grantor *grantor,
                                     struct aster_error *error)
{
    char server[DEMO_PATH_MAX];
    char config[DEMO_PATH_MAX];
    char log[DEMO_PATH_MAX];
    memset(grantor, 0, sizeof *grantor);
    aster_status status = aster_demo_stage_path(stage, "grantor", grantor->directory, error);
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "asterd.log", log, error);
    }
    if (status == ASTER_OK) {
        status = make_nodes(grantor, server, error);
    }
    if (status == ASTER_OK) {
        status = join(grantor->directory, "asterd.conf", config, error);
    }
    if (status == ASTER_OK) {
        status = write_config(grantor, config, server, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_asterd_start(config, log, &grantor->pid, &grantor->address, error);
    }
    if (status == ASTER_OK) {
        status = aster_relay_start(&grantor->relay, &grantor->address, error);
    }
    if (status == ASTER_OK) {
        name_addresses(grantor);
    }
    return status;
}

int aster_demo_grantor_close(struct demo_grantor *grantor)
{
    int code = grantor->pid > 0 ? aster_demo_asterd_end(grantor->pid) : -1;
    grantor->pid = 0;
    aster_relay_stop(&grantor->relay);
    return code;
}

aster_status aster_demo_grantor_connect(const struct demo_grantor *grantor, enum demo_node node,
                                        struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    options.addresses = grantor->direct;
    options.node = grantor->node[node];
    options.without_tcp = true;
    return aster_grantor_open(&options, serializer, error);
}
