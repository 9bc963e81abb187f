#include "platform/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Split at the last colon; brackets are for IPv6 numbers and are taken off. */
static aster_status split(const char *text, char host[ASTER_ADDRESS_HOST_MAX], const char **port,
                          struct aster_error *error)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    char *end;
    unsigned long number = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    bool bare_v6 = colon != NULL && memchr(text, ':', length) != NULL && text[0] != '[';
    if (colon == NULL || bare_v6 || length >= ASTER_ADDRESS_HOST_MAX || colon[1] < '0' || colon[1] > '9' ||
        *end != '\0' || number > 65535) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set(error, ASTER_ERR_INVALID, "\"%s\" is not an address: write host:port or [ipv6]:port",
                               aster_printable(aster_text(text), shown));
    }
    *port = colon + 1;
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    return ASTER_OK;
}

aster_status aster_address_check(const char *text, struct aster_error *error)
{
    char host[ASTER_ADDRESS_HOST_MAX];
    const char *port;
    return split(text, host, &port, error);
}

aster_status aster_address_resolve(const char *text, bool passive, struct aster_address *addresses, size_t max,
                                   size_t *count, struct aster_error *error)
{
    char host[ASTER_ADDRESS_HOST_MAX];
    const char *port = NULL;
    aster_status status = split(text, host, &port, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (host[0] == '\0' && !passive) {
        return aster_error_set(error, ASTER_ERR_INVALID, "\"%s\" names no host: write host:port", text);
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM,
                                   .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : AI_ADDRCONFIG)};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &list);
    if (code != 0) {
        return aster_error_set(error, ASTER_ERR_UNREACHABLE,
                               "cannot resolve \"%s\" (%s): check the name or give a number", text, gai_strerror(code));
    }
    size_t found = 0;
    for (const struct addrinfo *at = list; at != NULL && found < max; at = at->ai_next) {
        if (at->ai_addrlen <= sizeof(struct sockaddr_storage)) {
            memset(&addresses[found], 0, sizeof addresses[found]);
            memcpy(&addresses[found].storage, at->ai_addr, at->ai_addrlen);
            addresses[found++].size = at->ai_addrlen;
        }
    }
    freeaddrinfo(list);
    *count = found;
    return ASTER_OK;
}

const char *aster_address_text(const struct aster_address *address, char text[ASTER_ADDRESS_TEXT_MAX])
{
    char host[64];
    char port[8];
    if (getnameinfo(&address->any, address->size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        snprintf(text, ASTER_ADDRESS_TEXT_MAX, "an unknown address");
    } else {
        snprintf(text, ASTER_ADDRESS_TEXT_MAX, address->any.sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    }
    return text;
}

static const struct sockaddr_in *v4(const struct aster_address *address)
{
    return (const struct sockaddr_in *)&address->storage;
}

static const struct sockaddr_in6 *v6(const struct aster_address *address)
{
    return (const struct sockaddr_in6 *)&address->storage;
}

bool aster_address_equal(const struct aster_address *a, const struct aster_address *b)
{
    if (a->any.sa_family != b->any.sa_family) {
        return false;
    }
    if (a->any.sa_family == AF_INET) {
        return v4(a)->sin_port == v4(b)->sin_port && v4(a)->sin_addr.s_addr == v4(b)->sin_addr.s_addr;
    }
    return v6(a)->sin6_port == v6(b)->sin6_port &&
           memcmp(&v6(a)->sin6_addr, &v6(b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

uint16_t aster_address_port(const struct aster_address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? v6(address)->sin6_port : v4(address)->sin_port);
}

bool aster_address_is_wildcard(const struct aster_address *address)
{
    return address->any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6(address)->sin6_addr)
                                              : v4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
}
