#include "cli/carried.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/host.h"

static bool epoch_of_text(const char *text, int64_t *epoch)
{
    char *end;
    errno = 0;
    long long value = text != NULL ? strtoll(text, &end, 10) : -1;
    if (text == NULL || text[0] == '\0' || *end != '\0' || errno != 0 || value < 0) {
        return false;
    }
    *epoch = value;
    return true;
}

static int from_text(const struct aster_cli *cli, const char *resource, const char *text, struct aster_carried *carried)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_fence_parse(text, carried->storage, sizeof carried->storage, &carried->fence, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (resource != NULL && !aster_bytes_equal(aster_text(resource), carried->fence.resource)) {
        return aster_cli_usage(cli, "the fence is for another resource than the one named");
    }
    return ASTER_EXIT_OK;
}

int aster_carried_resolve(const struct aster_cli *cli, const char *resource,
                          const struct aster_carried_options *options, struct aster_carried *carried)
{
    if (options->fence != NULL) {
        return from_text(cli, resource, options->fence, carried);
    }
    const char *inherited = getenv("ASTER_RESOURCE");
    bool same = inherited != NULL && (resource == NULL || strcmp(inherited, resource) == 0);
    const char *name = resource != NULL ? resource : inherited;
    const char *holder = options->holder != NULL ? options->holder : same ? getenv("ASTER_HOLDER") : NULL;
    int64_t epoch = options->epoch;
    if (name == NULL) {
        return aster_cli_usage(cli, "name a resource (outside `aster run` there is no ASTER_RESOURCE)");
    }
    if (epoch < 0 && !(same && epoch_of_text(getenv("ASTER_EPOCH"), &epoch))) {
        return aster_cli_usage(cli, "give the lease's --epoch; `aster acquire` printed it");
    }
    if (holder == NULL) {
        return aster_cli_usage(cli, "give the lease's --holder; `aster acquire` printed it");
    }
    carried->fence = (struct aster_fence){aster_text(name), epoch, aster_text(holder)};
    return ASTER_EXIT_OK;
}

aster_status aster_holder_resolve(const char *holder, char storage[ASTER_HOLDER_SIZE], struct aster_bytes *identity,
                                  struct aster_error *error)
{
    _Static_assert(ASTER_HOLDER_SIZE == ASTER_PROCESS_IDENTITY_SIZE, "an identity must fit");
    if (holder == NULL) {
        aster_status status = aster_host_process_identity(storage, error);
        if (status != ASTER_OK) {
            return status;
        }
        holder = storage;
    }
    *identity = aster_text(holder);
    return ASTER_OK;
}
