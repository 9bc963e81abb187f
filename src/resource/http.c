#include "aster/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aster/limits.h"
#include "base/error.h"
#include "engine/escape.h"

aster_status aster_http_fence_format(const struct aster_fence *fence, char resource[ASTER_HTTP_RESOURCE_MAX],
                                     char epoch[ASTER_HTTP_EPOCH_MAX], struct aster_error *error)
{
    struct aster_writer writer = {(unsigned char *)resource, ASTER_HTTP_RESOURCE_MAX, 0, false};
    aster_status status = aster_resource_check(fence->resource, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (fence->epoch < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "epoch is %" PRId64 ": it must be 0 or more", fence->epoch);
    }
    aster_escape_write(&writer, fence->resource);
    aster_write_raw(&writer, "", 1);
    snprintf(epoch, ASTER_HTTP_EPOCH_MAX, "%" PRId64, fence->epoch);
    return ASTER_OK;
}

static aster_status check_present(const char *value, const char *header, struct aster_error *error)
{
    return value != NULL && value[0] != '\0'
               ? ASTER_OK
               : aster_error_set(error, ASTER_ERR_INVALID,
                                 "the header %s is missing: send %s and %s of the lease that this write is under",
                                 header, ASTER_HTTP_RESOURCE, ASTER_HTTP_EPOCH);
}

aster_status aster_http_fence_parse(const char *resource, const char *epoch, struct aster_bytes identity,
                                    char storage[ASTER_HTTP_RESOURCE_MAX], struct aster_fence *fence,
                                    struct aster_error *error)
{
    struct aster_writer writer = {(unsigned char *)storage, ASTER_HTTP_RESOURCE_MAX, 0, false};
    struct aster_fence fresh = {.holder = identity};
    char shown[ASTER_PRINTABLE_MAX];
    aster_status status = check_present(resource, ASTER_HTTP_RESOURCE, error);
    if (status == ASTER_OK) {
        status = check_present(epoch, ASTER_HTTP_EPOCH, error);
    }
    if (status == ASTER_OK) {
        status = aster_identity_check(identity, "peer", error);
    }
    if (status == ASTER_OK && !aster_epoch_read(epoch, epoch + strlen(epoch), &fresh.epoch)) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "%s is \"%s\": a decimal number from 0 to %" PRId64,
                                 ASTER_HTTP_EPOCH, aster_printable(aster_text(epoch), shown), INT64_MAX);
    }
    if (status == ASTER_OK && !aster_escape_read(resource, resource + strlen(resource), &writer)) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "%s is \"%s\": a name of at most %d bytes, those outside [A-Za-z0-9._~/@-] as %%XX",
                                 ASTER_HTTP_RESOURCE, aster_printable(aster_text(resource), shown), ASTER_RESOURCE_MAX);
    }
    fresh.resource = (struct aster_bytes){storage, writer.used};
    if (status == ASTER_OK) {
        status = aster_resource_check(fresh.resource, error);
    }
    if (status == ASTER_OK) {
        *fence = fresh;
    }
    return status;
}

int aster_http_status(enum aster_reason reason)
{
    switch (reason) {
    case ASTER_REASON_NONE:
        return 200;
    case ASTER_REASON_NO_FENCE:
        return 428;
    case ASTER_REASON_NOT_HOLDER:
    case ASTER_REASON_UNAUTHORIZED:
        return 403;
    case ASTER_REASON_WRONG_RESOURCE:
        return 422;
    default:
        return 412;
    }
}
