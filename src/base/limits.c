#include "aster/limits.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/utf8.h"

static aster_status name_check(struct aster_bytes name, const char *role, size_t max, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    if (name.size == 0 || name.data == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is empty: give 1 to %zu bytes of UTF-8", role, max);
    }
    if (name.size > max) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %zu bytes long, the limit is %zu: shorten \"%s\"", role,
                               name.size, max, aster_printable(name, shown));
    }
    size_t offset = aster_name_bytes_valid(name);
    if (offset < name.size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s has a control character or invalid UTF-8 at byte %zu of \"%s\": use printable UTF-8",
                               role, offset, aster_printable(name, shown));
    }
    return ASTER_OK;
}

aster_status aster_resource_check(struct aster_bytes resource, struct aster_error *error)
{
    return name_check(resource, "resource", ASTER_RESOURCE_MAX, error);
}

aster_status aster_identity_check(struct aster_bytes identity, const char *role, struct aster_error *error)
{
    return name_check(identity, role, ASTER_IDENTITY_MAX, error);
}

aster_status aster_ttl_check(int64_t ttl_ms, const struct aster_limits *limits, struct aster_error *error)
{
    int64_t max = limits->ttl_max_ms < ASTER_TTL_HARD_MAX_MS ? limits->ttl_max_ms : ASTER_TTL_HARD_MAX_MS;
    if (ttl_ms >= limits->ttl_min_ms && ttl_ms > 0 && ttl_ms <= max) {
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "ttl is %" PRId64 " ms, allowed are ttl_min %" PRId64 " ms to ttl_max %" PRId64
                           " ms: choose a ttl in that range (the unit is milliseconds)",
                           ttl_ms, limits->ttl_min_ms, max);
}
