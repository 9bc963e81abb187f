#include "serializer/sqlite/boot.h"

#include <stdio.h>

#define VIRTUAL_BOOT "virtual"

static char virtual_boot[ASTER_BOOT_ID_SIZE] = VIRTUAL_BOOT;

void aster_boot_set_virtual(const char *name)
{
    snprintf(virtual_boot, sizeof virtual_boot, "%s", name != NULL ? name : VIRTUAL_BOOT);
}

aster_status aster_boot_id(const struct aster_clock *clock, char boot_id[ASTER_BOOT_ID_SIZE], struct aster_error *error)
{
    if (!aster_clock_is_virtual(clock)) {
        return aster_host_boot_id(boot_id, error);
    }
    snprintf(boot_id, ASTER_BOOT_ID_SIZE, "%s", virtual_boot);
    return ASTER_OK;
}
