#include "aster/status.h"
#include "aster/version.h"

const char *aster_status_name(aster_status status)
{
    static const char *const names[] = {
        "OK",          "INVALID",     "NOMEM",   "IO",      "TIMEOUT",           "INDETERMINATE",
        "CLOSED",      "CANCELLED",   "LIMIT",   "CORRUPT", "COUNTER_EXHAUSTED", "BUSY",
        "UNREACHABLE", "UNSUPPORTED", "VERSION", "FORKED",  "REENTRANT",         "REFUSED"};
    size_t index = status <= 0 ? (size_t)(-(long)status) : sizeof names;
    return index < sizeof names / sizeof names[0] ? names[index] : "UNKNOWN";
}

const char *aster_version(void)
{
    return ASTER_VERSION_TEXT;
}
