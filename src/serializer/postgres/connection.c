#include "serializer/postgres/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aster/sys/clock.h"
#include "base/checked.h"
#include "base/error.h"
#include "serializer/postgres/fault.h"

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

/* Wait for the socket. False when `until_ns` has come. */
static bool wait_for(const struct aster_pg *pg, short events, int64_t until_ns)
{
    for (;;) {
        int64_t left_ns = until_ns - now_ns();
        if (left_ns <= 0) {
            return false;
        }
        int64_t left_ms = (left_ns + ASTER_NS_PER_MS - 1) / ASTER_NS_PER_MS;
        struct pollfd socket = {.fd = PQsocket(pg->conn), .events = events};
        int count = poll(&socket, 1, left_ms < 1000 ? (int)left_ms : 1000);
        if (count > 0 || (count < 0 && errno != EINTR)) {
            return true;
        }
    }
}

static aster_status lost(const struct aster_pg *pg, struct aster_error *error)
{
    return aster_pg_fault_lost(PQerrorMessage(pg->conn), error);
}

static aster_status finish_connecting(struct aster_pg *pg, int64_t until_ns, struct aster_error *error)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED || PQstatus(pg->conn) == CONNECTION_BAD) {
            return lost(pg, error);
        }
        if (!wait_for(pg, next == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ns)) {
            return aster_error_set(error, ASTER_ERR_UNREACHABLE,
                                   "PostgreSQL did not answer in time: check the address and the network");
        }
        next = PQconnectPoll(pg->conn);
    }
    return ASTER_OK;
}

/* A notice is for people at a prompt; libpq would print it. */
static void ignore_notice(void *user, const PGresult *notice)
{
    (void)user;
    (void)notice;
}

static aster_status start_connecting(struct aster_pg *pg, const struct aster_pg_place *place, struct aster_error *error)
{
    const char *const keys[] = {"fallback_application_name", "client_encoding", "dbname", NULL};
    const char *const values[] = {"aster", "UTF8", place->conninfo, NULL};
    pg->conn = PQconnectStartParams(keys, values, 1);
    if (pg->conn == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a connection");
    }
    PQsetNoticeReceiver(pg->conn, ignore_notice, NULL);
    return ASTER_OK;
}

/* Who are we, is a pooler in between, and is the schema ours? A pooler hands out process ids of its own. */
static aster_status look_around(struct aster_pg *pg, int64_t until_ns, struct aster_error *error)
{
    PGresult *result = NULL;
    if (PQsendQuery(pg->conn, "SELECT session_user, pg_backend_pid(), aster.version()") != 1) {
        return lost(pg, error);
    }
    aster_status status = aster_pg_result(pg, until_ns, &result, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        status = aster_pg_fault(result, error);
    } else {
        int64_t version = strtoll(PQgetvalue(result, 0, 2), NULL, 10);
        snprintf(pg->role, sizeof pg->role, "%s", PQgetvalue(result, 0, 0));
        pg->pooled = strtol(PQgetvalue(result, 0, 1), NULL, 10) != PQbackendPID(pg->conn);
        if (version != ASTER_PG_SCHEMA_VERSION) {
            status = aster_error_set(error, ASTER_ERR_VERSION,
                                     "the schema aster is of version %" PRId64 " and this Aster needs version %d: %s",
                                     version, ASTER_PG_SCHEMA_VERSION,
                                     version > ASTER_PG_SCHEMA_VERSION
                                         ? "use the newer Aster"
                                         : "apply the new schema: `aster schema apply postgres`");
        }
    }
    PQclear(result);
    if (!aster_pg_drain(pg, until_ns) && status == ASTER_OK) {
        status = lost(pg, error);
    }
    return status;
}

static aster_status set_up(struct aster_pg *pg, int64_t until_ns, struct aster_error *error)
{
    char settings[320];
    if (pg->pooled) {
        return ASTER_OK; /* what is set would be the next client's: see aster_pg_use in statement.c */
    }
    snprintf(settings, sizeof settings,
             "SET statement_timeout = %" PRId64 "; SET lock_timeout = %" PRId64
             "; SET idle_in_transaction_session_timeout = %" PRId64
             "; SET default_transaction_isolation = 'read committed'%s",
             pg->use.statement_timeout_ms, pg->use.lock_timeout_ms, pg->use.statement_timeout_ms,
             pg->use.listens ? "; LISTEN aster_freed" : "");
    return aster_pg_run(pg, settings, until_ns, NULL, error);
}

aster_status aster_pg_connect(struct aster_pg *pg, const struct aster_pg_place *place, const struct aster_pg_use *use,
                              struct aster_error *error)
{
    int64_t until_ns = aster_add_saturated(now_ns(), aster_ms_to_ns(place->connect_timeout_ms));
    *pg = (struct aster_pg){.use = *use};
    aster_status status = start_connecting(pg, place, error);
    if (status == ASTER_OK) {
        status = finish_connecting(pg, until_ns, error);
    }
    if (status == ASTER_OK) {
        status = look_around(pg, until_ns, error);
    }
    if (status == ASTER_OK) {
        status = set_up(pg, until_ns, error);
    }
    if (status != ASTER_OK) {
        aster_pg_close(pg);
    }
    return status;
}

void aster_pg_close(struct aster_pg *pg)
{
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->prepared = false;
}

aster_status aster_pg_result(struct aster_pg *pg, int64_t until_ns, PGresult **result, struct aster_error *error)
{
    int unsent = PQflush(pg->conn);
    while (unsent != 0 || PQisBusy(pg->conn)) {
        if (unsent < 0) {
            return lost(pg, error);
        }
        if (!wait_for(pg, (short)(unsent != 0 ? POLLIN | POLLOUT : POLLIN), until_ns)) {
            return aster_error_set(error, ASTER_ERR_TIMEOUT, "PostgreSQL did not answer in time: is it overloaded?");
        }
        if (PQconsumeInput(pg->conn) != 1) {
            return lost(pg, error);
        }
        unsent = unsent != 0 ? PQflush(pg->conn) : 0;
    }
    *result = PQgetResult(pg->conn);
    if (*result != NULL && PQstatus(pg->conn) == CONNECTION_BAD) {
        PQclear(*result);
        *result = NULL;
        return lost(pg, error);
    }
    return ASTER_OK;
}

bool aster_pg_drain(struct aster_pg *pg, int64_t until_ns)
{
    PGresult *result = NULL;
    do {
        PQclear(result);
        if (aster_pg_result(pg, until_ns, &result, NULL) != ASTER_OK) {
            return false;
        }
    } while (result != NULL);
    return PQstatus(pg->conn) == CONNECTION_OK;
}

aster_status aster_pg_run(struct aster_pg *pg, const char *sql, int64_t until_ns, char tag[32],
                          struct aster_error *error)
{
    PGresult *result = NULL;
    aster_status status = ASTER_OK;
    if (PQsendQuery(pg->conn, sql) != 1) {
        return lost(pg, error);
    }
    for (;;) {
        aster_status got = aster_pg_result(pg, until_ns, &result, error);
        if (got != ASTER_OK || result == NULL) {
            return got != ASTER_OK ? got : status;
        }
        if (PQresultStatus(result) == PGRES_FATAL_ERROR && status == ASTER_OK) {
            status = aster_pg_fault(result, error);
        } else if (tag != NULL) {
            snprintf(tag, 32, "%s", PQcmdStatus(result));
        }
        PQclear(result);
    }
}
