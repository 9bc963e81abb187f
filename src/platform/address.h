/* Socket addresses: parsing, printing, comparing. */
#ifndef PLATFORM_ADDRESS_H
#define PLATFORM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "aster/status.h"

struct aster_address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
    };
    socklen_t size;
};

#define ASTER_ADDRESS_TEXT_MAX 80
#define ASTER_ADDRESS_HOST_MAX 256

/* Resolve "host:port", "[v6]:port" or ":port" (the wildcard, when `passive`). Blocks for name service unless the host
 * is a number. Gives at most `max` addresses, in the resolver's order. Errors: ASTER_ERR_INVALID (not of that form),
 * ASTER_ERR_UNREACHABLE (no such host). */
aster_status aster_address_resolve(const char *text, bool passive, struct aster_address *addresses, size_t max,
                                   size_t *count, struct aster_error *error);

/* Whether it has the form that aster_address_resolve() wants, without asking anybody. Errors: ASTER_ERR_INVALID. */
aster_status aster_address_check(const char *text, struct aster_error *error);

/* "192.0.2.1:7400" or "[::1]:7400"; writes to the caller's buffer and returns it. */
const char *aster_address_text(const struct aster_address *address, char text[ASTER_ADDRESS_TEXT_MAX]);

bool aster_address_equal(const struct aster_address *a, const struct aster_address *b);
uint16_t aster_address_port(const struct aster_address *address);
bool aster_address_is_wildcard(const struct aster_address *address);

#endif
