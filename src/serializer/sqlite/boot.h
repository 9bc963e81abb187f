/* Which boot's clock intervals are measured on. */
#ifndef SQLITE_BOOT_H
#define SQLITE_BOOT_H

#include "aster/sys/clock.h"
#include "base/checked.h"
#include "platform/host.h"

struct aster_boot {
    char id[ASTER_BOOT_ID_SIZE];
    int64_t offset_ns; /* this process's clock minus the host's: time namespaces have one kernel and shifted clocks */
};

/* The kernel's boot id; for a virtual clock a fixed one, or what aster_boot_set_virtual() set. Errors: ASTER_ERR_IO. */
aster_status aster_boot_read(const struct aster_clock *clock, struct aster_boot *boot, struct aster_error *error);

/* Between an instant of this process's clock and the one that is stored for every process of the host. */
static inline int64_t aster_boot_to_stored(const struct aster_boot *boot, int64_t ns)
{
    return ns - boot->offset_ns;
}

static inline int64_t aster_boot_from_stored(const struct aster_boot *boot, int64_t ns)
{
    return aster_add_saturated(ns, boot->offset_ns);
}

/* For tests: stores that are opened over a virtual clock from now on belong to boot `name` (at most 36 bytes; NULL =
 * the fixed one). Not thread-safe. */
void aster_boot_set_virtual(const char *name);

#endif
