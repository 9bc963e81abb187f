/* The PostgreSQL serializer against what one would write by hand on the same server: a lease row that is taken and
 * given back with UPDATE ... RETURNING, without a history, without request ids, without a fence. Rounds of both in
 * turn. Usage: bench_postgres CONNINFO [SECONDS], where CONNINFO is a role with aster_worker that may create tables; or
 * bench/postgres.py, which starts a server for it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aster/postgres.h"
#include "aster/sys/serializer.h"
#include "physical.h"

#define ROUNDS 7
#define REQUESTERS 32
#define LEASES 500

static const char *conninfo;
static bool failed;

static void check(bool good, const char *what, const char *detail)
{
    if (!good) {
        fprintf(stderr, "bench_postgres: %s: %s\n", what, detail != NULL ? detail : "failed");
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* One line of the table. A ratio of times must stay below the bound, one of rates above it; bound 0 = none. */
static void report(const char *what, double ours, double theirs, const char *unit, double ratio, double bound,
                   bool is_time)
{
    bool pass = bound == 0 || (is_time ? ratio <= bound : ratio >= bound);
    failed = failed || !pass;
    printf("%-44s %9.0f %9.0f %-6s %6.2f", what, ours, theirs, unit, ratio);
    if (bound != 0) {
        printf("  bound %s %.1f  %s", is_time ? "<=" : ">=", bound, pass ? "PASS" : "FAIL");
    }
    printf("\n");
}

/* By hand. */

static PGconn *connect_by_hand(void)
{
    PGconn *conn = PQconnectdb(conninfo);
    check(PQstatus(conn) == CONNECTION_OK, "cannot connect", PQerrorMessage(conn));
    return conn;
}

static void execute(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    check(PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK, sql,
          PQerrorMessage(conn));
    PQclear(result);
}

static const char acquire_by_hand[] =
    "UPDATE hand SET epoch = epoch + 1, holder = $2, expires = clock_timestamp() + interval '30 s' "
    "WHERE resource = $1 AND (holder IS NULL OR expires < clock_timestamp()) RETURNING epoch";
static const char release_by_hand[] =
    "UPDATE hand SET epoch = epoch + 1, holder = NULL WHERE resource = $1 AND holder = $2 RETURNING epoch";
static const char renew_by_hand[] =
    "UPDATE hand SET expires = clock_timestamp() + interval '30 s' "
    "WHERE resource = $1 AND holder = $2 AND expires > clock_timestamp() RETURNING epoch";

static void prepare_by_hand(PGconn *conn)
{
    PQclear(PQprepare(conn, "acquire", acquire_by_hand, 2, NULL));
    PQclear(PQprepare(conn, "release", release_by_hand, 2, NULL));
    PQclear(PQprepare(conn, "renew", renew_by_hand, 2, NULL));
}

static void run_by_hand(PGconn *conn, const char *name, const char *text, const char *resource)
{
    const char *const values[] = {resource, "w"};
    PGresult *result = text == NULL ? PQexecPrepared(conn, name, 2, values, NULL, NULL, 0)
                                    : PQexecParams(conn, text, 2, NULL, values, NULL, NULL, 0);
    check(PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1, name, PQerrorMessage(conn));
    PQclear(result);
}

/* With Aster. */

static int64_t decide(struct aster_serializer *serializer, enum aster_operation_kind kind, const char *resource,
                      int64_t epoch)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text("w");
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    operation.epoch = epoch;
    check(aster_serializer_call(serializer, &operation, 0, &reply, &error) == ASTER_OK, "Aster", error.message);
    check(reply.decision.outcome == ASTER_GRANTED, "Aster", "denied");
    int64_t given = reply.decision.epoch;
    aster_reply_fini(&reply);
    return given;
}

/* Requesters, each with a resource of its own, for a while; cycles per second of all. */
struct requester {
    struct aster_serializer *serializer; /* NULL = by hand */
    bool prepared;
    char resource[32];
    int64_t until_ns;
    int64_t cycles;
};

static void *request(void *user)
{
    struct requester *requester = user;
    PGconn *conn = NULL;
    if (requester->serializer == NULL) {
        conn = connect_by_hand();
        prepare_by_hand(conn);
    }
    while (bench_now_ns() < requester->until_ns) {
        if (conn == NULL) {
            int64_t epoch = decide(requester->serializer, ASTER_OP_ACQUIRE, requester->resource, 0);
            decide(requester->serializer, ASTER_OP_RELEASE, requester->resource, epoch);
        } else {
            run_by_hand(conn, "acquire", requester->prepared ? NULL : acquire_by_hand, requester->resource);
            run_by_hand(conn, "release", requester->prepared ? NULL : release_by_hand, requester->resource);
        }
        requester->cycles++;
    }
    PQfinish(conn);
    return NULL;
}

static double cycles_per_second(struct aster_serializer *serializer, bool prepared, int count, double seconds)
{
    static struct requester requesters[REQUESTERS];
    pthread_t threads[REQUESTERS];
    int64_t start_ns = bench_now_ns();
    for (int i = 0; i < count; i++) {
        requesters[i] = (struct requester){
            .serializer = serializer, .prepared = prepared, .until_ns = start_ns + (int64_t)(seconds * 1e9)};
        snprintf(requesters[i].resource, sizeof requesters[i].resource, "bench/%d", i);
        check(pthread_create(&threads[i], NULL, request, &requesters[i]) == 0, "cannot start a thread", NULL);
    }
    int64_t cycles = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        cycles += requesters[i].cycles;
    }
    return (double)cycles / ((double)(bench_now_ns() - start_ns) / 1e9);
}

static void measure_cycles(struct aster_serializer *serializer, const char *what, bool prepared, int count,
                           double seconds, double bound)
{
    double ours[ROUNDS];
    double theirs[ROUNDS];
    double ratios[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        theirs[round] = cycles_per_second(NULL, prepared, count, seconds);
        ours[round] = cycles_per_second(serializer, prepared, count, seconds);
        ratios[round] = ours[round] / theirs[round];
    }
    report(what, median(ours, ROUNDS), median(theirs, ROUNDS), "/s", median(ratios, ROUNDS), bound, false);
}

/* Renewals of many leases of one process, as the renewing thread sends them. */
struct renewals {
    struct aster_request requests[LEASES];
    struct aster_request *pointers[LEASES];
    char names[LEASES][32];
    pthread_mutex_t mutex;
    pthread_cond_t done;
    int left;
};

static void renewed(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                    const struct aster_error *error)
{
    struct renewals *renewals = request->user;
    check(status == ASTER_OK && decision->outcome == ASTER_GRANTED, "renew", error != NULL ? error->message : "denied");
    pthread_mutex_lock(&renewals->mutex);
    if (--renewals->left == 0) {
        pthread_cond_signal(&renewals->done);
    }
    pthread_mutex_unlock(&renewals->mutex);
}

static void make_renewals(struct aster_serializer *serializer, PGconn *conn, struct renewals *renewals)
{
    pthread_mutex_init(&renewals->mutex, NULL);
    pthread_cond_init(&renewals->done, NULL);
    for (int i = 0; i < LEASES; i++) {
        snprintf(renewals->names[i], sizeof renewals->names[i], "many/%d", i);
        struct aster_request *request = &renewals->requests[i];
        *request = (struct aster_request)ASTER_REQUEST_INIT;
        request->operation.kind = ASTER_OP_RENEW;
        request->operation.resource = aster_text(renewals->names[i]);
        request->operation.caller = aster_text("w");
        request->operation.epoch = decide(serializer, ASTER_OP_ACQUIRE, renewals->names[i], 0);
        request->complete = renewed;
        request->user = renewals;
        renewals->pointers[i] = request;
        run_by_hand(conn, "acquire", NULL, renewals->names[i]);
    }
}

static void measure_renewals(struct aster_serializer *serializer)
{
    static struct renewals renewals;
    double ours[ROUNDS];
    double theirs[ROUNDS];
    double ratios[ROUNDS];
    PGconn *conn = connect_by_hand();
    prepare_by_hand(conn);
    make_renewals(serializer, conn, &renewals);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = bench_now_ns();
        for (int i = 0; i < LEASES; i++) {
            run_by_hand(conn, "renew", NULL, renewals.names[i]);
        }
        int64_t middle_ns = bench_now_ns();
        renewals.left = LEASES;
        aster_serializer_submit_many(serializer, renewals.pointers, LEASES);
        pthread_mutex_lock(&renewals.mutex);
        while (renewals.left > 0) {
            pthread_cond_wait(&renewals.done, &renewals.mutex);
        }
        pthread_mutex_unlock(&renewals.mutex);
        theirs[round] = LEASES * 1e9 / (double)(middle_ns - start_ns);
        ours[round] = LEASES * 1e9 / (double)(bench_now_ns() - middle_ns);
        ratios[round] = ours[round] / theirs[round];
    }
    report("renewals, 500 leases of one process", median(ours, ROUNDS), median(theirs, ROUNDS), "/s",
           median(ratios, ROUNDS), 1.0, false);
    PQfinish(conn);
}

/* A transaction that updates one row, all of it in one pipeline, with and without the guard. */
static void send(PGconn *conn, const char *name, const char *value)
{
    const char *const values[] = {value};
    check(PQsendQueryPrepared(conn, name, value != NULL, values, NULL, NULL, 0) == 1, name, PQerrorMessage(conn));
}

static void prepare_update(PGconn *conn)
{
    PQclear(PQprepare(conn, "begin", "BEGIN", 0, NULL));
    PQclear(PQprepare(conn, "fence", "SELECT aster.fence('guarded', $1::bigint, 'w')", 1, NULL));
    PQclear(PQprepare(conn, "bare", "UPDATE bare SET n = n + 1 WHERE id = 1", 0, NULL));
    PQclear(PQprepare(conn, "guarded", "UPDATE guarded SET n = n + 1 WHERE id = 1", 0, NULL));
    PQclear(PQprepare(conn, "commit", "COMMIT", 0, NULL));
}

static void update_once(PGconn *conn, const char *table, const char *epoch)
{
    check(PQenterPipelineMode(conn) == 1, "pipeline", NULL);
    send(conn, "begin", NULL);
    if (epoch != NULL) {
        send(conn, "fence", epoch);
    }
    send(conn, table, NULL);
    send(conn, "commit", NULL);
    check(PQpipelineSync(conn) == 1, "sync", PQerrorMessage(conn));
    for (bool synced = false; !synced;) {
        PGresult *result = PQgetResult(conn);
        synced = result != NULL && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        check(PQresultStatus(result) != PGRES_FATAL_ERROR || result == NULL, table, PQerrorMessage(conn));
        PQclear(result);
    }
    PQexitPipelineMode(conn);
}

static double update_us(PGconn *conn, const char *table, const char *epoch, double seconds)
{
    int64_t start_ns = bench_now_ns();
    int64_t until_ns = start_ns + (int64_t)(seconds * 1e9);
    int64_t count = 0;
    for (; bench_now_ns() < until_ns; count++) {
        update_once(conn, table, epoch);
    }
    return (double)(bench_now_ns() - start_ns) / 1e3 / (double)count;
}

static void measure_guard(struct aster_serializer *serializer, double seconds)
{
    double guarded[ROUNDS];
    double bare[ROUNDS];
    double ratios[ROUNDS];
    char epoch[24];
    PGconn *conn = connect_by_hand();
    snprintf(epoch, sizeof epoch, "%lld", (long long)decide(serializer, ASTER_OP_ACQUIRE, "guarded", 0));
    prepare_update(conn);
    update_us(conn, "bare", NULL, 0.05);
    update_us(conn, "guarded", epoch, 0.05);
    for (int round = 0; round < ROUNDS; round++) {
        bare[round] = update_us(conn, "bare", NULL, seconds);
        guarded[round] = update_us(conn, "guarded", epoch, seconds);
        ratios[round] = guarded[round] / bare[round];
    }
    report("a transaction with one UPDATE, guarded / bare", median(guarded, ROUNDS), median(bare, ROUNDS), "us",
           median(ratios, ROUNDS), 1.5, true);
    PQfinish(conn);
}

static void make_tables(void)
{
    PGconn *conn = connect_by_hand();
    execute(conn,
            "DROP TABLE IF EXISTS hand, bare, guarded;"
            "CREATE TABLE hand (resource text PRIMARY KEY, epoch bigint NOT NULL, holder text, expires timestamptz NOT "
            "NULL) WITH (fillfactor = 50);"
            "INSERT INTO hand SELECT 'bench/' || i, 0, NULL, '-infinity' FROM generate_series(0, 63) AS i;"
            "INSERT INTO hand SELECT 'many/' || i, 0, NULL, '-infinity' FROM generate_series(0, 499) AS i;"
            "CREATE TABLE bare (id int PRIMARY KEY, n bigint); INSERT INTO bare VALUES (1, 0);"
            "CREATE TABLE guarded (id int PRIMARY KEY, n bigint); INSERT INTO guarded VALUES (1, 0);"
            "SELECT aster.protect('guarded', 'guarded')");
    PQfinish(conn);
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fprintf(stderr, "usage: bench_postgres CONNINFO [SECONDS]\n");
        return 64;
    }
    conninfo = arguments[1];
    double seconds = count > 2 ? strtod(arguments[2], NULL) : 20;
    double slice = seconds / (ROUNDS * 8);
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    make_tables();
    check(aster_postgres_open(conninfo, NULL, &serializer, &error) == ASTER_OK, "open", error.message);
    printf("%-44s %9s %9s\n", "", "Aster", "by hand");
    measure_cycles(serializer, "acquire+release, 32 requesters", true, REQUESTERS, slice, 1.0);
    measure_cycles(serializer, "acquire+release, one requester", false, 1, slice, 0);
    measure_cycles(serializer, "acquire+release, one; by hand prepared", true, 1, slice, 0);
    measure_renewals(serializer);
    measure_guard(serializer, slice);
    aster_serializer_destroy(serializer);
    return failed;
}
