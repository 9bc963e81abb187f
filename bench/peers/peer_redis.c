/* Redis, over hiredis: SET key token NX PX ttl; compare-and-delete and compare-and-expire in Lua, as its documentation
 * recommends. A client that is refused tries again at once: Redis has no waiting. */
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define SHA_SIZE 41

struct connection {
    redisContext *context;
    char token[32];
    char ttl[16];
};

static const char release_script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
static const char renew_script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
static char release_sha[SHA_SIZE];
static char renew_sha[SHA_SIZE];

static void load(redisContext *context, const char *script, char sha[SHA_SIZE])
{
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", script);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING) {
        die("SCRIPT LOAD: %s", reply != NULL ? reply->str : context->errstr);
    }
    snprintf(sha, SHA_SIZE, "%s", reply->str);
    freeReplyObject(reply);
}

static enum outcome redis_open(struct client *client)
{
    struct connection *connection = calloc(1, sizeof *connection);
    redisContext *context = redisConnect("127.0.0.1", options.port);
    if (connection == NULL || context == NULL || context->err != 0) {
        return OUTCOME_ERROR;
    }
    if (release_sha[0] == '\0') {
        load(context, release_script, release_sha);
        load(context, renew_script, renew_sha);
    }
    snprintf(connection->token, sizeof connection->token, "%x-%x", (unsigned)getpid(), (unsigned)client->id);
    snprintf(connection->ttl, sizeof connection->ttl, "%d", options.ttl_ms);
    fcntl(context->fd, F_SETFL, fcntl(context->fd, F_GETFL) | O_NONBLOCK);
    context->flags &= ~REDIS_BLOCK;
    connection->context = context;
    client->own = connection;
    client->fd = context->fd;
    return OUTCOME_OK;
}

static enum outcome send_words(struct client *client, int count, const char **words)
{
    struct connection *connection = client->own;
    int sent = 0;
    if (redisAppendCommandArgv(connection->context, count, words, NULL) != REDIS_OK) {
        return OUTCOME_ERROR;
    }
    while (!sent) {
        if (redisBufferWrite(connection->context, &sent) != REDIS_OK) {
            return OUTCOME_ERROR;
        }
    }
    return OUTCOME_PENDING;
}

static enum outcome redis_acquire(struct client *client)
{
    const struct connection *connection = client->own;
    const char *words[] = {"SET", client->resource, connection->token, "NX", "PX", connection->ttl};
    return send_words(client, 6, words);
}

static enum outcome redis_release(struct client *client)
{
    const struct connection *connection = client->own;
    const char *words[] = {"EVALSHA", release_sha, "1", client->resource, connection->token};
    return send_words(client, 5, words);
}

static enum outcome redis_renew(struct client *client)
{
    const struct connection *connection = client->own;
    const char *words[] = {"EVALSHA", renew_sha, "1", client->resource, connection->token, connection->ttl};
    return send_words(client, 6, words);
}

static enum outcome outcome_of(const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_STATUS:
        return OUTCOME_OK;
    case REDIS_REPLY_NIL:
        return OUTCOME_REFUSED;
    case REDIS_REPLY_INTEGER:
        return reply->integer > 0 ? OUTCOME_OK : OUTCOME_REFUSED;
    default:
        fprintf(stderr, "redis: %s\n", reply->str != NULL ? reply->str : "unexpected reply");
        return OUTCOME_ERROR;
    }
}

static enum outcome redis_io(struct client *client)
{
    struct connection *connection = client->own;
    redisReply *reply = NULL;
    if (redisBufferRead(connection->context) != REDIS_OK ||
        redisGetReply(connection->context, (void **)&reply) != REDIS_OK) {
        return OUTCOME_ERROR;
    }
    if (reply == NULL) {
        return OUTCOME_PENDING;
    }
    enum outcome outcome = outcome_of(reply);
    freeReplyObject(reply);
    return outcome;
}

const struct peer peer = {.name = "redis",
                          .open = redis_open,
                          .acquire = redis_acquire,
                          .renew = redis_renew,
                          .release = redis_release,
                          .io = redis_io};
