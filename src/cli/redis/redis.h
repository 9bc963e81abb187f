/* What the command line has to do with Redis. Without hiredis in the build, absent.c stands in for it and refuses. */
#ifndef CLI_REDIS_REDIS_H
#define CLI_REDIS_REDIS_H

#include "aster/serializer.h"
#include "cli/command.h"

struct aster_redis;

/* Connect to "redis://[USER@]HOST[:PORT]" or "redis-socket:PATH"; the password comes from ASTER_REDIS_PASSWORD, because
 * a command line can be read by every user of the machine. Errors: ASTER_ERR_INVALID (also what the server refuses),
 * ASTER_ERR_UNREACHABLE, ASTER_ERR_UNSUPPORTED. */
aster_status aster_redis_open(const char *url, struct aster_redis **redis, struct aster_error *error);
/* NULL is legal. */
void aster_redis_close(struct aster_redis *redis);

/* Load the function library, replacing an older one. Errors: ASTER_ERR_IO, ASTER_ERR_VERSION (older than Redis 7). */
aster_status aster_redis_load(struct aster_redis *redis, struct aster_error *error);

/* Is exactly this build's library there? *state: what `aster schema verify` says, static text; NULL = it is. */
aster_status aster_redis_verify(struct aster_redis *redis, const char **state, struct aster_error *error);

/* What Redis knows of a resource. */
struct aster_redis_fence {
    int64_t epoch;                       /* 0 = never pushed */
    char holder[ASTER_IDENTITY_MAX + 1]; /* empty = nobody */
    bool advanced;                       /* by this push */
};

/* Push (epoch, holder) of `resource`, only ever forward. The answer is what Redis has then. `key` NULL: by convention,
 * aster:fence:{RESOURCE}. Errors: ASTER_ERR_INVALID (the server's refusal), ASTER_ERR_IO. */
aster_status aster_redis_push(struct aster_redis *redis, const char *key, struct aster_bytes resource, int64_t epoch,
                              struct aster_bytes holder, struct aster_redis_fence *fence, struct aster_error *error);
/* The same without pushing. */
aster_status aster_redis_look(struct aster_redis *redis, const char *key, struct aster_bytes resource,
                              struct aster_redis_fence *fence, struct aster_error *error);

/* The text of the library; static. */
const char *aster_redis_library(void);

#endif
