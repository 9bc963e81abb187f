#include "cli/carried.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/grantor/grantor.h"
#include "cli/store.h"
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

static int refuse_other(const struct aster_cli *cli, const char *inherited, const char *resource)
{
    char shown[ASTER_PRINTABLE_MAX];
    char shown_inherited[ASTER_PRINTABLE_MAX];
    return aster_cli_usage(cli, "the lease in the environment is for %s, not for %s: give --holder and --epoch",
                           aster_printable(aster_text(inherited), shown_inherited),
                           aster_printable(aster_text(resource), shown));
}

static int refuse_epoch(const struct aster_cli *cli, const char *inherited)
{
    char shown[ASTER_PRINTABLE_MAX];
    if (inherited == NULL) {
        return aster_cli_usage(cli, "give the lease's --epoch; `aster acquire` printed it");
    }
    return aster_cli_usage(cli, "ASTER_EPOCH is \"%s\", which is no epoch",
                           aster_printable(aster_text(inherited), shown));
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
    const char *inherited_epoch = same ? getenv("ASTER_EPOCH") : NULL;
    int64_t epoch = options->epoch;
    if (name == NULL) {
        return aster_cli_usage(cli, "name a resource (outside `aster run` there is no ASTER_RESOURCE)");
    }
    if (inherited != NULL && !same && (epoch < 0 || holder == NULL)) {
        return refuse_other(cli, inherited, resource);
    }
    if (epoch < 0 && !epoch_of_text(inherited_epoch, &epoch)) {
        return refuse_epoch(cli, inherited_epoch);
    }
    if (holder == NULL && aster_store_is_grantor(cli->store)) {
        struct aster_error error = ASTER_ERROR_INIT;
        if (aster_cli_grantor_identity(cli->node, carried->storage, &error) != ASTER_OK) {
            return aster_cli_fail(cli, &error);
        }
        holder = carried->storage; /* at a grantor the holder is the node, whoever asks */
    }
    if (holder == NULL) {
        return aster_cli_usage(cli, "give the lease's --holder; `aster acquire` printed it");
    }
    carried->fence = (struct aster_fence){aster_text(name), epoch, aster_text(holder)};
    return ASTER_EXIT_OK;
}

int aster_resource_resolve(const struct aster_cli *cli, const char *named, struct aster_bytes *resource)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const char *name = named != NULL ? named : getenv("ASTER_RESOURCE");
    if (name == NULL) {
        return aster_cli_usage(cli, "RESOURCE is missing (outside `aster run` there is no ASTER_RESOURCE)");
    }
    *resource = aster_text(name);
    return aster_resource_check(*resource, &error) == ASTER_OK ? ASTER_EXIT_OK : aster_cli_fail(cli, &error);
}

aster_status aster_holder_resolve(const struct aster_cli *cli, const char *holder, char storage[ASTER_HOLDER_SIZE],
                                  struct aster_bytes *identity, struct aster_error *error)
{
    _Static_assert(ASTER_HOLDER_SIZE == ASTER_PROCESS_IDENTITY_SIZE, "an identity must fit");
    if (holder == NULL) {
        aster_status status = aster_store_is_grantor(cli->store) ? aster_cli_grantor_identity(cli->node, storage, error)
                                                                 : aster_host_process_identity(storage, error);
        if (status != ASTER_OK) {
            return status;
        }
        holder = storage;
    }
    *identity = aster_text(holder);
    return ASTER_OK;
}
