#include "serializer/sqlite/boot.h"

#include <stdio.h>

#define VIRTUAL_BOOT "virtual"

static char virtual_boot[ASTER_BOOT_ID_SIZE] = VIRTUAL_BOOT;

void aster_boot_set_virtual(const char *name)
{
    snprintf(virtual_boot, sizeof virtual_boot, "%s", name != NULL ? name : VIRTUAL_BOOT);
}

aster_status aster_boot_read(const struct aster_clock *clock, struct aster_boot *boot, struct aster_error *error)
{
    struct aster_boot read = {.offset_ns = 0};
    aster_status status = ASTER_OK;
    if (aster_clock_is_virtual(clock)) {
        snprintf(read.id, sizeof read.id, "%s", virtual_boot);
    } else {
        status = aster_host_boot_id(read.id, error);
        read.offset_ns = aster_host_boottime_offset_ns();
    }
    if (status == ASTER_OK) {
        *boot = read;
    }
    return status;
}
