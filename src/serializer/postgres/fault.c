#include "serializer/postgres/fault.h"

#include <string.h>

#include "base/error.h"

static const char *state_of(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state != NULL ? state : "";
}

static bool is(const PGresult *result, const char *state)
{
    return strcmp(state_of(result), state) == 0;
}

/* Of what class is it? */
static bool of(const PGresult *result, const char *state_class)
{
    return strncmp(state_of(result), state_class, 2) == 0;
}

bool aster_pg_fault_is_conflict(const PGresult *result)
{
    return is(result, "40001") || is(result, "40P01");
}

bool aster_pg_fault_is_lock(const PGresult *result)
{
    return is(result, "55P03");
}

bool aster_pg_fault_is_session(const PGresult *result)
{
    return of(result, "08") || is(result, "57P01") || is(result, "57P02") || is(result, "57P03") ||
           is(result, "57P05") || is(result, "25P03") || is(result, "25006");
}

static aster_status status_of(const PGresult *result)
{
    static const struct {
        const char *state;
        aster_status status;
    } known[] = {
        {"22023", ASTER_ERR_INVALID}, {"LF101", ASTER_ERR_COUNTER_EXHAUSTED},
        {"LF102", ASTER_ERR_VERSION}, {"54000", ASTER_ERR_LIMIT},
        {"55P03", ASTER_ERR_BUSY},    {"40001", ASTER_ERR_BUSY},
        {"40P01", ASTER_ERR_BUSY},    {"57014", ASTER_ERR_TIMEOUT},
        {"53300", ASTER_ERR_BUSY},    {"42501", ASTER_ERR_INVALID},
        {"3F000", ASTER_ERR_INVALID}, {"42883", ASTER_ERR_INVALID},
        {"3D000", ASTER_ERR_INVALID}, {"28P01", ASTER_ERR_INVALID},
        {"28000", ASTER_ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (is(result, known[i].state)) {
            return known[i].status;
        }
    }
    return aster_pg_fault_is_session(result) ? ASTER_ERR_UNREACHABLE : ASTER_ERR_IO;
}

/* What to do next, where Aster knows better than PostgreSQL. */
static const char *advice(const PGresult *result)
{
    if (is(result, "42501")) {
        return "GRANT aster_worker (or aster_operator) TO this role";
    }
    if (is(result, "3F000") || is(result, "42883")) {
        return "apply Aster's schema to this database: `aster schema apply postgres`";
    }
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    return hint != NULL ? hint : "nothing was applied";
}

aster_status aster_pg_fault(const PGresult *result, struct aster_error *error)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    message = message != NULL ? message : "no message";
    if (strncmp(message, "aster: ", 7) == 0) {
        message += 7;
    }
    return aster_error_set(error, status_of(result), "PostgreSQL: %.300s: %.150s", message, advice(result));
}

aster_status aster_pg_fault_lost(const char *message, struct aster_error *error)
{
    /* Several lines, the first of them with the cause. */
    int length = message != NULL ? (int)strcspn(message, "\n") : 0;
    return aster_error_set(error, ASTER_ERR_UNREACHABLE, "PostgreSQL: %.*s", length < 400 ? length : 400,
                           length > 0 ? message : "the connection was lost");
}
