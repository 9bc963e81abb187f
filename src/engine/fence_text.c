#include <inttypes.h>
#include <stdio.h>

#include "aster/fence.h"
#include "aster/limits.h"
#include "base/error.h"
#include "engine/escape.h"

#define PREFIX "aster1:"

static aster_status check_fence(const struct aster_fence *fence, struct aster_error *error)
{
    aster_status status = aster_resource_check(fence->resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK && fence->epoch < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "epoch is %" PRId64 ": it must be 0 or more", fence->epoch);
    }
    return status;
}

aster_status aster_fence_format(const struct aster_fence *fence, char *text, size_t size, struct aster_error *error)
{
    aster_status status = check_fence(fence, error);
    if (status != ASTER_OK) {
        return status;
    }
    char epoch[24];
    int length = snprintf(epoch, sizeof epoch, "%" PRId64, fence->epoch);
    char line[ASTER_FENCE_TEXT_MAX];
    struct aster_writer writer = {(unsigned char *)line, sizeof line, 0, false};
    aster_write_raw(&writer, PREFIX, strlen(PREFIX));
    aster_write_raw(&writer, epoch, (size_t)length);
    aster_write_raw(&writer, ":", 1);
    aster_escape_write(&writer, fence->holder);
    aster_write_raw(&writer, ":", 1);
    aster_escape_write(&writer, fence->resource);
    aster_write_raw(&writer, "", 1);
    if (writer.failed || writer.used > size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the fence's text needs %zu bytes, the buffer has %zu: give %d", writer.used, size,
                               ASTER_FENCE_TEXT_MAX);
    }
    memcpy(text, line, writer.used);
    return ASTER_OK;
}

aster_status aster_fence_parse(const char *text, char *storage, size_t storage_size, struct aster_fence *fence,
                               struct aster_error *error)
{
    const char *epoch_at = strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? text + strlen(PREFIX) : NULL;
    const char *holder_at = epoch_at != NULL ? strchr(epoch_at, ':') : NULL;
    const char *resource_at = holder_at != NULL ? strchr(holder_at + 1, ':') : NULL;
    char shown[ASTER_PRINTABLE_MAX];
    struct aster_fence fresh;
    struct aster_writer writer = {(unsigned char *)storage, storage_size, 0, false};
    if (resource_at == NULL || !aster_epoch_read(epoch_at, holder_at, &fresh.epoch) ||
        !aster_escape_read(holder_at + 1, resource_at, &writer)) {
        goto malformed;
    }
    fresh.holder = (struct aster_bytes){storage, writer.used};
    if (!aster_escape_read(resource_at + 1, resource_at + 1 + strlen(resource_at + 1), &writer)) {
        goto malformed;
    }
    fresh.resource = (struct aster_bytes){storage + fresh.holder.size, writer.used - fresh.holder.size};
    aster_status status = check_fence(&fresh, error);
    if (status == ASTER_OK) {
        *fence = fresh;
    }
    return status;

malformed:
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "\"%s\" is not a fence: expected aster1:EPOCH:HOLDER:RESOURCE as in ASTER_FENCE",
                           aster_printable(aster_text(text), shown));
}
