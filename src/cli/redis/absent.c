/* A build without hiredis. */
#include "base/error.h"
#include "cli/redis/redis.h"

extern const char aster_redis_library_text[]; /* lua/aster.lua */

static aster_status absent(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                           "this build cannot speak to Redis (it was made without hiredis): install libhiredis-dev and "
                           "build again, or load `aster schema print redis` with redis-cli -x FUNCTION LOAD REPLACE");
}

const char *aster_redis_library(void)
{
    return aster_redis_library_text;
}

aster_status aster_redis_open(const char *url, struct aster_redis **redis, struct aster_error *error)
{
    (void)url;
    (void)redis;
    return absent(error);
}

void aster_redis_close(struct aster_redis *redis)
{
    (void)redis;
}

aster_status aster_redis_load(struct aster_redis *redis, struct aster_error *error)
{
    (void)redis;
    return absent(error);
}

aster_status aster_redis_verify(struct aster_redis *redis, const char **state, struct aster_error *error)
{
    (void)redis;
    (void)state;
    return absent(error);
}

aster_status aster_redis_push(struct aster_redis *redis, const char *key, struct aster_bytes resource, int64_t epoch,
                              struct aster_bytes holder, struct aster_redis_fence *fence, struct aster_error *error)
{
    (void)redis;
    (void)key;
    (void)resource;
    (void)epoch;
    (void)holder;
    (void)fence;
    return absent(error);
}

aster_status aster_redis_look(struct aster_redis *redis, const char *key, struct aster_bytes resource,
                              struct aster_redis_fence *fence, struct aster_error *error)
{
    (void)redis;
    (void)key;
    (void)resource;
    (void)fence;
    return absent(error);
}
