/* The conformance suite over PostgreSQL. */
#include "support/unit.h"

#include "aster/postgres.h"
#include "aster/sys/conformance.h"
#include "support/postgres_server.h"

static struct postgres_server server;

static aster_status open_fresh(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                               struct aster_error *error)
{
    (void)user;
    (void)clock;
    postgres_server_do(&server, "reset", NULL);
    return aster_postgres_open(server.conninfo, NULL, serializer, error);
}

/* The server is another process's: its connections break, and held rows are armed anew. */
static aster_status restart(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    (void)user;
    (void)serializer;
    (void)error;
    postgres_server_do(&server, "restart", NULL);
    return ASTER_OK;
}

static void every_scenario_holds_over_postgresql(void **state)
{
    (void)state;
    const struct aster_conformance_subject subject = {sizeof subject, "postgres", open_fresh, restart, true, NULL};
    struct aster_conformance_result result;
    aster_status status = aster_conformance_run(&subject, stdout, &result);
    assert_int_equal(result.failed, 0);
    assert_int_equal(status, ASTER_OK);
    assert_true(result.passed > 30);
}

int main(void)
{
    postgres_server_init(&server);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_scenario_holds_over_postgresql)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    postgres_server_fini(&server);
    return failed;
}
