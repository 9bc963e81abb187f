#include "serializer/sqlite/filesystem.h"

#include "base/error.h"
#include "platform/files.h"
#include "platform/host.h"

aster_status (*aster_filesystem_probe)(const char *path, uint64_t *magic,
                                       struct aster_error *error) = aster_file_system_magic;

aster_status aster_filesystem_check(const char *path, const char *advice, struct aster_error *error)
{
    uint64_t magic;
    aster_status status = aster_filesystem_probe(path, &magic, error);
    if (status != ASTER_OK) {
        return status;
    }
    const char *name = aster_filesystem_network_name(magic);
    if (name == NULL) {
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "%s is on %s: SQLite's WAL does not work across machines and leases would not exclude each "
                           "other; %s",
                           path, name, advice);
}
