#include "serializer/remote/addresses.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define PART_MAX (ASTER_IDENTITY_MAX + ASTER_ADDRESS_HOST_MAX + 16)

static aster_status set_server(const char *server, size_t length, bool must_name, struct remote_address *address,
                               const char *host, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    if (length == 0 && must_name) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "who the grantor at %s is must be known in key mode: write IDENTITY@%s (the server's "
                               "`aster node id`)",
                               aster_printable(aster_text(host), shown), shown);
    }
    if (length > ASTER_IDENTITY_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the grantor's identity is %zu bytes, at most %d are legal",
                               length, ASTER_IDENTITY_MAX);
    }
    memcpy(address->server, server, length);
    address->server[length] = '\0';
    return length == 0 ? ASTER_OK : aster_identity_check(aster_text(address->server), "grantor", error);
}

static aster_status add(const char *part, const char *server, bool must_name, struct remote_addresses *addresses,
                        struct aster_error *error)
{
    struct aster_address found[ASTER_GRANTOR_ADDRESSES_MAX];
    struct remote_address made;
    size_t count = 0;
    const char *at = strrchr(part, '@');
    const char *host = at != NULL ? at + 1 : part;
    const char *name = at != NULL ? part : server != NULL ? server : "";
    size_t length = at != NULL ? (size_t)(at - part) : strlen(name);
    aster_status status = set_server(name, length, must_name, &made, host, error);
    if (status == ASTER_OK) {
        status = aster_address_resolve(host, false, found, ASTER_GRANTOR_ADDRESSES_MAX, &count, error);
    }
    for (size_t i = 0; status == ASTER_OK && i < count && addresses->count < ASTER_GRANTOR_ADDRESSES_MAX; i++) {
        made.address = found[i];
        addresses->list[addresses->count++] = made;
    }
    return status;
}

aster_status remote_addresses_resolve(const char *text, const char *server, bool must_name,
                                      struct remote_addresses *addresses, struct aster_error *error)
{
    struct remote_addresses found = {.count = 0};
    aster_status unresolved = ASTER_OK;
    if (text == NULL || text[0] == '\0') {
        return aster_error_set(error, ASTER_ERR_INVALID, "no address of a grantor: write [IDENTITY@]HOST:PORT");
    }
    while (text != NULL) {
        char part[PART_MAX];
        size_t length = strcspn(text, ",");
        if (length >= sizeof part) {
            return aster_error_set(error, ASTER_ERR_INVALID, "an address of %zu bytes: write [IDENTITY@]HOST:PORT",
                                   length);
        }
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        aster_status status = add(part, server, must_name, &found, error);
        if (status == ASTER_ERR_UNREACHABLE) {
            unresolved = status;
        } else if (status != ASTER_OK) {
            return status;
        }
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    if (found.count == 0) {
        return unresolved;
    }
    *addresses = found;
    return ASTER_OK;
}
