/* Names of the engine's enums, as they appear in messages, logs, SQL and JSON. */
#include "aster/operation.h"
#include "aster/serializer.h"

#define NAME_OF(table, index)                                                                                          \
    ((size_t)(index) < sizeof(table) / sizeof((table)[0]) ? (table)[(size_t)(index)] : "unknown")

const char *aster_reason_name(enum aster_reason reason)
{
    static const char *const names[] = {"NONE",        "HELD_BY_OTHER", "EPOCH_MISMATCH", "NOT_HOLDER",
                                        "EXPIRED",     "NOT_HELD",      "UNAUTHORIZED",   "REVISION_MISMATCH",
                                        "STALE_EPOCH", "FUTURE_EPOCH",  "WRONG_RESOURCE", "NO_FENCE"};
    return NAME_OF(names, reason);
}

const char *aster_operation_name(enum aster_operation_kind kind)
{
    static const char *const names[] = {"unknown", "acquire", "renew",  "release", "revoke",
                                        "expire",  "put",     "forget", "inspect"};
    return NAME_OF(names, kind);
}

const char *aster_event_name(enum aster_event_kind kind)
{
    static const char *const names[] = {"unknown", "granted",   "takeover",       "released",    "revoked",
                                        "expired", "forgotten", "fence-rejected", "unauthorized"};
    return NAME_OF(names, kind);
}
