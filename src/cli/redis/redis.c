#include "cli/redis/redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "base/error.h"
#include "cli/redis/url.h"

#define TIMEOUT_S 5
#define KEY_MAX (ASTER_RESOURCE_MAX + 16)

extern const char aster_redis_library_text[]; /* lua/aster.lua */

struct aster_redis {
    redisContext *context;
};

const char *aster_redis_library(void)
{
    return aster_redis_library_text;
}

/* The first line of the server's own words: they name the reason, and never a value. */
static aster_status refused(const redisReply *reply, const char *what, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    size_t size = strcspn(reply->str, "\r\n");
    return aster_error_set(error, ASTER_ERR_INVALID, "Redis refused to %s: %s", what,
                           aster_printable((struct aster_bytes){reply->str, size}, shown));
}

/* Send one command; a reply that is no error, or the error. */
static aster_status ask(struct aster_redis *redis, const char *what, int argc, const char **argv, const size_t *sizes,
                        redisReply **reply, struct aster_error *error)
{
    redisReply *got = redisCommandArgv(redis->context, argc, argv, sizes);
    if (got == NULL) {
        return aster_error_set(error, ASTER_ERR_IO, "cannot %s: %s; whether it was done is unknown", what,
                               redis->context->errstr);
    }
    if (got->type == REDIS_REPLY_ERROR) {
        aster_status status = refused(got, what, error);
        freeReplyObject(got);
        return status;
    }
    *reply = got;
    return ASTER_OK;
}

static aster_status ask_text(struct aster_redis *redis, const char *what, int argc, const char **argv,
                             redisReply **reply, struct aster_error *error)
{
    return ask(redis, what, argc, argv, NULL, reply, error);
}

static aster_status authenticate(struct aster_redis *redis, const char *user, struct aster_error *error)
{
    const char *password = getenv("ASTER_REDIS_PASSWORD");
    const char *with_user[] = {"AUTH", user, password};
    const char *without[] = {"AUTH", password};
    redisReply *reply = NULL;
    if (password == NULL) {
        return user[0] == '\0' ? ASTER_OK
                               : aster_error_set(error, ASTER_ERR_INVALID,
                                                 "the address names a user: set ASTER_REDIS_PASSWORD as well");
    }
    aster_status status = user[0] != '\0' ? ask_text(redis, "log in", 3, with_user, &reply, error)
                                          : ask_text(redis, "log in", 2, without, &reply, error);
    freeReplyObject(reply);
    return status;
}

aster_status aster_redis_open(const char *url, struct aster_redis **redis, struct aster_error *error)
{
    const struct timeval timeout = {TIMEOUT_S, 0};
    struct aster_redis_url parsed;
    aster_status status = aster_redis_url_parse(url, &parsed, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_redis *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a connection");
    }
    made->context = parsed.port != 0 ? redisConnectWithTimeout(parsed.host, parsed.port, timeout)
                                     : redisConnectUnixWithTimeout(parsed.host, timeout);
    if (made->context == NULL || made->context->err != 0 || redisSetTimeout(made->context, timeout) != REDIS_OK) {
        status = aster_error_set(error, ASTER_ERR_UNREACHABLE, "cannot reach %.200s: %s", url,
                                 made->context != NULL ? made->context->errstr : "out of memory");
    } else {
        status = authenticate(made, parsed.user, error);
    }
    if (status != ASTER_OK) {
        aster_redis_close(made);
        return status;
    }
    *redis = made;
    return ASTER_OK;
}

void aster_redis_close(struct aster_redis *redis)
{
    if (redis != NULL) {
        if (redis->context != NULL) {
            redisFree(redis->context);
        }
        free(redis);
    }
}

aster_status aster_redis_load(struct aster_redis *redis, struct aster_error *error)
{
    const char *arguments[] = {"FUNCTION", "LOAD", "REPLACE", aster_redis_library()};
    redisReply *reply = NULL;
    aster_status status = ask_text(redis, "load the functions", 4, arguments, &reply, error);
    if (status == ASTER_ERR_INVALID && error != NULL && strstr(error->message, "unknown command") != NULL) {
        status = aster_error_set(error, ASTER_ERR_VERSION, "this Redis has no functions: 7.0 or newer is needed");
    }
    freeReplyObject(reply);
    return status;
}

/* The value of `name` in a flat list of names and values. */
static const redisReply *find_value(const redisReply *list, const char *name)
{
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        if (list->element[i]->type == REDIS_REPLY_STRING && strcmp(list->element[i]->str, name) == 0) {
            return list->element[i + 1];
        }
    }
    return NULL;
}

aster_status aster_redis_verify(struct aster_redis *redis, const char **state, struct aster_error *error)
{
    const char *arguments[] = {"FUNCTION", "LIST", "LIBRARYNAME", "aster", "WITHCODE"};
    redisReply *reply = NULL;
    aster_status status = ask_text(redis, "list the functions", 5, arguments, &reply, error);
    if (status != ASTER_OK) {
        return status;
    }
    const redisReply *code =
        reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 ? find_value(reply->element[0], "library_code") : NULL;
    *state = code == NULL ? "the functions are not loaded"
             : code->type == REDIS_REPLY_STRING && strcmp(code->str, aster_redis_library()) == 0
                 ? NULL
                 : "the functions are of another version";
    freeReplyObject(reply);
    return ASTER_OK;
}

static size_t key_of(const char *given, struct aster_bytes resource, char key[KEY_MAX])
{
    return (size_t)(given != NULL ? snprintf(key, KEY_MAX, "%s", given)
                                  : snprintf(key, KEY_MAX, "aster:fence:{%.*s}", (int)resource.size,
                                             (const char *)resource.data));
}

/* {EPOCH, HOLDER}, the last two of the list. */
static aster_status read_fence(const redisReply *reply, struct aster_redis_fence *fence, struct aster_error *error)
{
    size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
    if (count < 2 || reply->element[count - 2]->type != REDIS_REPLY_STRING ||
        reply->element[count - 1]->type != REDIS_REPLY_STRING || reply->element[count - 1]->len > ASTER_IDENTITY_MAX) {
        return aster_error_set(error, ASTER_ERR_CORRUPT,
                               "Redis answered something else than a fence row: are the "
                               "functions Aster's? `aster schema verify redis` tells");
    }
    fence->epoch = strtoll(reply->element[count - 2]->str, NULL, 10);
    memcpy(fence->holder, reply->element[count - 1]->str, reply->element[count - 1]->len);
    fence->holder[reply->element[count - 1]->len] = '\0';
    fence->advanced = count == 3 && reply->element[0]->integer == 1;
    return ASTER_OK;
}

static aster_status call(struct aster_redis *redis, const char *what, int argc, const char **argv, const size_t *sizes,
                         struct aster_redis_fence *fence, struct aster_error *error)
{
    redisReply *reply = NULL;
    aster_status status = ask(redis, what, argc, argv, sizes, &reply, error);
    if (status == ASTER_ERR_INVALID && error != NULL && strstr(error->message, "Function not found") != NULL) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "the functions are not in this Redis: `aster schema apply redis --to URL` loads them");
    }
    if (status == ASTER_OK) {
        status = read_fence(reply, fence, error);
    }
    freeReplyObject(reply);
    return status;
}

aster_status aster_redis_push(struct aster_redis *redis, const char *key, struct aster_bytes resource, int64_t epoch,
                              struct aster_bytes holder, struct aster_redis_fence *fence, struct aster_error *error)
{
    char key_text[KEY_MAX];
    char number[24];
    size_t key_size = key_of(key, resource, key_text);
    int number_size = snprintf(number, sizeof number, "%" PRId64, epoch);
    const char *arguments[] = {
        "FCALL", "aster_push", "1", key_text, resource.data, number, holder.size > 0 ? holder.data : ""};
    const size_t sizes[] = {5, 10, 1, key_size, resource.size, (size_t)number_size, holder.size};
    return call(redis, "push the fence", 7, arguments, sizes, fence, error);
}

aster_status aster_redis_look(struct aster_redis *redis, const char *key, struct aster_bytes resource,
                              struct aster_redis_fence *fence, struct aster_error *error)
{
    char key_text[KEY_MAX];
    size_t key_size = key_of(key, resource, key_text);
    const char *arguments[] = {"FCALL", "aster_fence", "1", key_text, resource.data};
    const size_t sizes[] = {5, 11, 1, key_size, resource.size};
    return call(redis, "look at the fence", 5, arguments, sizes, fence, error);
}
