#include "cli/exit.h"

int aster_exit_of(aster_status status)
{
    switch (status) {
    case ASTER_ERR_INVALID:
        return ASTER_EXIT_USAGE;
    case ASTER_ERR_TIMEOUT:
    case ASTER_ERR_BUSY:
    case ASTER_ERR_UNREACHABLE:
    case ASTER_ERR_CLOSED:
    case ASTER_ERR_LIMIT:
        return ASTER_EXIT_UNREACHABLE;
    case ASTER_ERR_IO:
    case ASTER_ERR_CORRUPT:
    case ASTER_ERR_INDETERMINATE:
        return ASTER_EXIT_IO;
    case ASTER_ERR_REFUSED:
        return ASTER_EXIT_REFUSED;
    case ASTER_ERR_UNSUPPORTED:
    case ASTER_ERR_VERSION:
        return ASTER_EXIT_CONFIG;
    default:
        return ASTER_EXIT_INTERNAL;
    }
}
