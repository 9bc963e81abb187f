#include "cli/redis/url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PORT_DEFAULT 6379
#define TCP_SCHEME "redis://"
#define SOCKET_SCHEME "redis-socket:"

static aster_status malformed(const char *text, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "\"%s\" is no Redis: write redis://[USER@]HOST[:PORT] or redis-socket:PATH",
                           aster_printable(aster_text(text), shown));
}

static bool copy_part(char *to, size_t capacity, const char *from, size_t size)
{
    if (size == 0 || size >= capacity) {
        return false;
    }
    memcpy(to, from, size);
    to[size] = '\0';
    return true;
}

static bool parse_port(const char *text, int *port)
{
    char *end = NULL;
    long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : 0;
    *port = (int)number;
    return number > 0 && number < 65536 && end[0] == '\0';
}

static bool parse_host(const char *at, struct aster_redis_url *url)
{
    bool bracketed = at[0] == '[';
    const char *end = bracketed ? strchr(at, ']') : at + strcspn(at, ":");
    url->port = PORT_DEFAULT;
    if (end == NULL || !copy_part(url->host, sizeof url->host, at + bracketed, (size_t)(end - at) - bracketed)) {
        return false;
    }
    end += bracketed;
    return end[0] == '\0' || (end[0] == ':' && parse_port(end + 1, &url->port));
}

aster_status aster_redis_url_parse(const char *text, struct aster_redis_url *url, struct aster_error *error)
{
    struct aster_redis_url parsed = {{0}, {0}, 0};
    if (strncmp(text, "rediss:", 7) == 0) {
        return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                               "TLS to Redis is not in this build: use a tunnel, or a socket with redis-socket:PATH");
    }
    if (strncmp(text, SOCKET_SCHEME, strlen(SOCKET_SCHEME)) == 0) {
        const char *path = text + strlen(SOCKET_SCHEME);
        if (!copy_part(parsed.host, sizeof parsed.host, path, strlen(path))) {
            return malformed(text, error);
        }
        *url = parsed;
        return ASTER_OK;
    }
    if (strncmp(text, TCP_SCHEME, strlen(TCP_SCHEME)) != 0 || strchr(text + strlen(TCP_SCHEME), '/') != NULL) {
        return malformed(text, error);
    }
    const char *at = text + strlen(TCP_SCHEME);
    const char *sign = strrchr(at, '@');
    if (sign != NULL && memchr(at, ':', (size_t)(sign - at)) != NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "a password in the address can be read by every user of this machine: set "
                               "ASTER_REDIS_PASSWORD instead");
    }
    if ((sign != NULL && !copy_part(parsed.user, sizeof parsed.user, at, (size_t)(sign - at))) ||
        !parse_host(sign != NULL ? sign + 1 : at, &parsed)) {
        return malformed(text, error);
    }
    *url = parsed;
    return ASTER_OK;
}
