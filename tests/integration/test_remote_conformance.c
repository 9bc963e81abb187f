/* The conformance suite over the network: every name of its scenarios is a node with a key of its own. */
#include "support/unit.h"

#include "aster/sys/conformance.h"
#include "support/remote_crowd.h"

static struct remote_grantor grantor;
static bool serving;

static void end_grantor(void)
{
    if (serving) {
        remote_grantor_fini(&grantor);
        serving = false;
    }
}

static aster_status open_fresh(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                               struct aster_error *error)
{
    (void)user;
    (void)clock;
    end_grantor();
    remote_grantor_init(&grantor, NULL);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    serving = true;
    return remote_crowd_open(&grantor, serializer, error);
}

/* The server is another process's, as it were: the connection is cut, and held rows are armed anew. */
static aster_status restart(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    (void)user;
    (void)serializer;
    uint16_t port = aster_address_port(&grantor.bound);
    remote_grantor_stop(&grantor);
    aster_status status = aster_memory_restart(grantor.serializer, error);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, port);
    return status;
}

static void every_scenario_holds_over_the_network(void **state)
{
    (void)state;
    const struct aster_conformance_subject subject = {sizeof subject, "grantor", open_fresh, restart, true, NULL};
    struct aster_conformance_result result;
    aster_status status = aster_conformance_run(&subject, stdout, &result);
    end_grantor();
    assert_int_equal(result.failed, 0);
    assert_int_equal(status, ASTER_OK);
    assert_true(result.passed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_scenario_holds_over_the_network)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
