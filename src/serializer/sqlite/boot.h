/* Which boot's clock intervals are measured on. */
#ifndef SQLITE_BOOT_H
#define SQLITE_BOOT_H

#include "aster/sys/clock.h"
#include "platform/host.h"

/* The kernel's boot id; for a virtual clock a fixed one, or what the next function set. Errors: ASTER_ERR_IO. */
aster_status aster_boot_id(const struct aster_clock *clock, char boot_id[ASTER_BOOT_ID_SIZE],
                           struct aster_error *error);

/* For tests: stores that are opened over a virtual clock from now on belong to boot `name` (at most 36 bytes; NULL =
 * the fixed one). Not thread-safe. */
void aster_boot_set_virtual(const char *name);

#endif
