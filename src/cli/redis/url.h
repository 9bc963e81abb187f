/* Where a Redis is. */
#ifndef CLI_REDIS_URL_H
#define CLI_REDIS_URL_H

#include <stdint.h>

#include "aster/status.h"

struct aster_redis_url {
    char host[256]; /* or the path of a socket */
    char user[257]; /* empty = the default user */
    int port;       /* 0 = host is a socket */
};

/* "redis://[USER@]HOST[:PORT]", HOST in brackets when it is an IPv6 address, or "redis-socket:PATH".
 * Errors: ASTER_ERR_INVALID; ASTER_ERR_UNSUPPORTED for rediss:. Pure. */
aster_status aster_redis_url_parse(const char *text, struct aster_redis_url *url, struct aster_error *error);

#endif
