/* Exit statuses of `aster`: sysexits.h where it fits, so that scripts can tell what to do next. */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

#include "aster/status.h"

enum aster_exit {
    ASTER_EXIT_OK = 0,
    ASTER_EXIT_FAILED = 1,        /* demo, bench, doctor, schema: looked at, and not as it should be; get: no value */
    ASTER_EXIT_USAGE = 64,        /* the command line is wrong, or its times conflict */
    ASTER_EXIT_UNREACHABLE = 69,  /* the store cannot be reached, or stayed locked: trying again may help */
    ASTER_EXIT_INTERNAL = 70,     /* a fault inside Aster or the operating system */
    ASTER_EXIT_IO = 74,           /* reading or writing failed, or the store is damaged */
    ASTER_EXIT_NOT_ACQUIRED = 75, /* somebody else holds it: trying again may help */
    ASTER_EXIT_LOST = 76,         /* the lease ended while the command ran */
    ASTER_EXIT_REFUSED = 77,      /* the store answered no: no right to, not the holder, not the current epoch, ... */
    ASTER_EXIT_CONFIG = 78,       /* the store named is not usable; plan: no times fit */
    ASTER_EXIT_CANNOT_RUN = 126,
    ASTER_EXIT_NOT_FOUND = 127,
    ASTER_EXIT_SIGNAL = 128 /* + number of the signal */
};

/* The exit status for a failure (never ASTER_OK). */
int aster_exit_of(aster_status status);

#endif
