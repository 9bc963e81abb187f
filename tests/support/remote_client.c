#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/remote_grantor.h"

void remote_make_node(char directory[64], const char *name, char id[ASTER_NODE_ID_SIZE])
{
    struct aster_error error = ASTER_ERROR_INIT;
    strcpy(directory, "/tmp/aster-remote-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(aster_node_create(directory, name, 1, id, &error), ASTER_OK);
}

void remote_remove_node(const char *directory)
{
    struct aster_node_paths paths;
    assert_int_equal(aster_node_paths(directory, &paths, NULL), ASTER_OK);
    unlink(paths.key);
    unlink(paths.certificate);
    unlink(paths.secret);
    rmdir(directory);
}

void remote_client_log(enum aster_grantor_event event, const char *line, void *user)
{
    (void)event;
    struct remote_client *client = user;
    pthread_mutex_lock(&client->lock);
    size_t used = strlen(client->log);
    snprintf(client->log + used, sizeof client->log - used, "%s\n", line);
    pthread_mutex_unlock(&client->lock);
}

void remote_client_init(struct remote_client *client)
{
    memset(client, 0, sizeof *client);
    pthread_mutex_init(&client->lock, NULL);
    remote_make_node(client->directory, "client", client->id);
}

void remote_client_fini(struct remote_client *client)
{
    aster_serializer_destroy(client->serializer);
    remote_remove_node(client->directory);
    pthread_mutex_destroy(&client->lock);
}

struct aster_grantor_options remote_client_options(struct remote_client *client, const struct remote_grantor *grantor)
{
    static char address[ASTER_ADDRESS_TEXT_MAX];
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    options.addresses = aster_address_text(&grantor->bound, address);
    options.server = grantor->id;
    options.node = client->directory;
    options.log = remote_client_log;
    options.log_user = client;
    return options;
}

void remote_client_open(struct remote_client *client, const struct aster_grantor_options *options)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_grantor_open(options, &client->serializer, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
}

bool remote_client_logged(struct remote_client *client, const char *text)
{
    pthread_mutex_lock(&client->lock);
    bool found = strstr(client->log, text) != NULL;
    pthread_mutex_unlock(&client->lock);
    return found;
}
