#include "aster/lease.h"

const char *aster_lease_status_name(enum aster_lease_status status)
{
    static const char *const names[] = {"UNKNOWN",  "ACQUIRING", "HELD", "RELEASE_PENDING",
                                        "RELEASED", "FENCED",    "LOST", "NOT_GRANTED"};
    return (size_t)status < sizeof names / sizeof names[0] ? names[(size_t)status] : names[0];
}

const char *aster_lease_reason_name(enum aster_lease_reason reason)
{
    static const char *const names[] = {"NONE",    "UNREACHABLE", "DENIED", "EXPIRED",
                                        "REVOKED", "CLOCK_JUMP",  "CLOSED", "FORKED"};
    return (size_t)reason < sizeof names / sizeof names[0] ? names[(size_t)reason] : "UNKNOWN";
}
