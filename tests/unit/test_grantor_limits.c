/* What one identity, and all together, may have of the server; and that reads end when nobody waits for them. */
#include <stdio.h>
#include <stdlib.h>

#include "grantor/calls.h"
#include "grantor/limits.h"
#include "grantor/read_jobs.h"
#include "grantor/session.h"
#include "support/unit.h"

#define EVENTS 100000

static struct grantor_state world;
static struct grantor_session session;
static struct grantor_peer *peer;
static struct aster_error error;

static bool takes(enum aster_operation_kind kind)
{
    struct aster_call call = {.kind = ASTER_CALL_OPERATION};
    call.one.operation.kind = kind;
    error = (struct aster_error)ASTER_ERROR_INIT;
    return grantor_limits_take_call(&world, peer, &call, &error);
}

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&session, 0, sizeof session);
    peer = calloc(1, sizeof *peer);
    world.in_flight_max = 1024;
    world.in_flight_total_max = 4096;
    session.state = &world;
    session.peer = peer;
    return peer == NULL;
}

static int close_world(void **state)
{
    (void)state;
    free(peer);
    return 0;
}

static void one_identity_is_bounded_in_operations_and_in_bytes(void **state)
{
    (void)state;
    peer->in_flight = 1023;
    assert_true(takes(ASTER_OP_ACQUIRE));
    peer->in_flight = 1024;
    assert_false(takes(ASTER_OP_ACQUIRE));
    assert_int_equal(error.status, ASTER_ERR_LIMIT);
    assert_non_null(strstr(error.message, "in-flight-max is 1024"));
    peer->in_flight = 20;
    peer->bytes = 1024 * GRANTOR_OPERATION_BYTES;
    assert_false(takes(ASTER_OP_PUT));
    assert_int_equal(error.status, ASTER_ERR_LIMIT);
    peer->bytes--;
    assert_true(takes(ASTER_OP_PUT));
}

static void a_message_of_many_renewals_counts_as_many(void **state)
{
    (void)state;
    struct aster_call call = {.kind = ASTER_CALL_RENEW_MANY};
    call.many.count = 24;
    peer->in_flight = 1000;
    assert_true(grantor_limits_take_call(&world, peer, &call, &error));
    call.many.count = 25;
    assert_false(grantor_limits_take_call(&world, peer, &call, &error));
}

static void of_all_together_renewals_are_refused_last(void **state)
{
    (void)state;
    world.flights = 4096;
    assert_false(takes(ASTER_OP_ACQUIRE));
    assert_non_null(strstr(error.message, "in-flight-total-max"));
    assert_true(takes(ASTER_OP_RENEW));
    world.flights = 4096 + 1024;
    assert_false(takes(ASTER_OP_RENEW));
    world.flights = 10;
    world.flight_bytes = 4096 * GRANTOR_OPERATION_BYTES;
    assert_false(takes(ASTER_OP_PUT));
    assert_true(takes(ASTER_OP_RENEW));
}

static void reads_and_watches_are_bounded_by_identity_and_together(void **state)
{
    (void)state;
    assert_true(grantor_limits_take_read(&world, peer, true, &error));
    peer->reads = GRANTOR_READS_MAX;
    assert_false(grantor_limits_take_read(&world, peer, false, &error));
    peer->reads = 0;
    peer->watches = GRANTOR_WATCHES_MAX;
    assert_false(grantor_limits_take_read(&world, peer, true, &error));
    assert_true(grantor_limits_take_read(&world, peer, false, &error));
    peer->read_bytes = GRANTOR_READ_BYTES_MAX;
    assert_false(grantor_limits_take_read(&world, peer, false, &error));
    peer->read_bytes = 0;
    world.read_bytes = GRANTOR_READ_BYTES_TOTAL_MAX;
    assert_false(grantor_limits_take_read(&world, peer, false, &error));
    world.read_bytes = 0;
    world.reads = GRANTOR_READS_TOTAL_MAX;
    assert_false(grantor_limits_take_read(&world, peer, false, &error));
    assert_int_equal(error.status, ASTER_ERR_LIMIT);
}

/* ---- the reader ---- */

struct long_history {
    size_t visited;
    size_t leave_after; /* the link goes when so many have been visited */
};

static aster_status visit_all(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                              struct aster_error *failure)
{
    struct long_history *history = self;
    (void)query;
    (void)failure;
    for (int64_t i = 1; i <= EVENTS; i++) {
        struct aster_event event = {.revision = i, .kind = ASTER_EVENT_GRANTED};
        event.resource = aster_text("catalog");
        event.actor = aster_text("w1");
        if (++history->visited == history->leave_after) {
            atomic_store(&session.gone, true);
        }
        if (!visit(&event, user)) {
            break;
        }
    }
    return ASTER_OK;
}

static void do_nothing(void *self)
{
    (void)self;
}

static void take_nothing(void *self, struct aster_request *request)
{
    (void)self;
    (void)request;
}

static aster_status idle(void *self, int64_t timeout_ms)
{
    (void)self;
    (void)timeout_ms;
    return ASTER_OK;
}

static const struct aster_serializer_ops ops = {.struct_size = sizeof ops,
                                                .name = "long",
                                                .submit = take_nothing,
                                                .close = do_nothing,
                                                .wait = idle,
                                                .destroy = do_nothing,
                                                .history = visit_all};

/* Does one HISTORY; what it found is freed. */
static aster_status read_history(struct long_history *history)
{
    struct grantor_settings *settings = calloc(1, sizeof *settings);
    struct grantor_page *page = grantor_page_create();
    struct grantor_job job = {.state = &world, .session = &session, .peer = peer, .kind = ASTER_CALL_HISTORY};
    job.identity = aster_text("w1");
    job.chunks_end = &job.chunks;
    const struct grantor_node node = {.id = strdup("w1")};
    assert_true(grantor_nodes_put(&settings->nodes, &node));
    assert_int_equal(aster_serializer_create(&ops, history, NULL, &world.serializer, &error), ASTER_OK);
    assert_int_equal(grantor_admission_create(settings, &world.admission, &error), ASTER_OK);
    grantor_job_do(&job, page, NULL, EVENTS);
    while (job.chunks != NULL) {
        struct grantor_chunk *next = job.chunks->next;
        free(job.chunks);
        job.chunks = next;
    }
    grantor_admission_destroy(world.admission);
    grantor_page_destroy(page);
    aster_serializer_destroy(world.serializer);
    return job.status;
}

static void a_read_whose_link_is_gone_is_not_begun(void **state)
{
    (void)state;
    struct long_history history = {0, 0};
    atomic_store(&session.gone, true);
    read_history(&history);
    assert_in_range(history.visited, 0, 1);
}

static void a_read_ends_when_its_link_goes(void **state)
{
    (void)state;
    struct long_history history = {0, 500};
    read_history(&history);
    assert_in_range(history.visited, 500, 501);
}

static void a_read_ends_when_too_much_waits_to_be_sent(void **state)
{
    (void)state;
    struct long_history history = {0, 0};
    atomic_store(&peer->read_bytes, GRANTOR_READ_BYTES_MAX);
    assert_int_equal(read_history(&history), ASTER_ERR_LIMIT);
    assert_in_range(history.visited, 1, 5000); /* one page */
    atomic_store(&peer->read_bytes, 0);
    atomic_store(&world.read_bytes, 0);
    history.visited = 0;
    assert_int_equal(read_history(&history), ASTER_OK);
    assert_true(atomic_load(&peer->read_bytes) > 100000); /* counted where it was found */
    assert_int_equal(atomic_load(&peer->read_bytes), atomic_load(&world.read_bytes));
}

/* ---- what is in flight, by its id ---- */

static void an_id_is_found_among_many_and_only_in_its_own_session(void **state)
{
    (void)state;
    enum { COUNT = 60000 };
    struct grantor_session other = {.state = &world};
    struct grantor_flight *flights = calloc(COUNT, sizeof *flights);
    assert_non_null(flights);
    assert_int_equal(grantor_calls_create(&world.calls, &error), ASTER_OK);
    for (uint64_t i = 0; i < COUNT; i++) {
        flights[i].session = i % 2 == 0 ? &session : &other;
        flights[i].id = i / 2;
        grantor_calls_add(world.calls, &flights[i]);
    }
    for (uint64_t i = 0; i < COUNT; i++) { /* a walk each would be two thousand million steps */
        assert_ptr_equal(grantor_calls_find(world.calls, flights[i].session, i / 2), &flights[i]);
        assert_null(grantor_calls_find(world.calls, &session, COUNT + i));
    }
    for (uint64_t i = 0; i < COUNT; i += 3) {
        grantor_calls_remove(world.calls, &flights[i]);
        assert_null(grantor_calls_find(world.calls, flights[i].session, i / 2));
    }
    assert_ptr_equal(grantor_calls_find(world.calls, &other, 0), &flights[1]);
    grantor_calls_destroy(world.calls);
    free(flights);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(one_identity_is_bounded_in_operations_and_in_bytes),
        EACH(a_message_of_many_renewals_counts_as_many),
        EACH(of_all_together_renewals_are_refused_last),
        EACH(reads_and_watches_are_bounded_by_identity_and_together),
        EACH(a_read_whose_link_is_gone_is_not_begun),
        EACH(a_read_ends_when_its_link_goes),
        EACH(a_read_ends_when_too_much_waits_to_be_sent),
        EACH(an_id_is_found_among_many_and_only_in_its_own_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
