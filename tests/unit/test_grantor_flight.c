/* What becomes of an operation whose client is gone, with a store that answers when the test says so. */
#include <stdlib.h>

#include "grantor/calls.h"
#include "grantor/flight.h"
#include "grantor/parking.h"
#include "grantor/peers.h"
#include "grantor/reader.h"
#include "grantor/repeats.h"
#include "grantor/session.h"
#include "support/unit.h"

#define KEPT_MAX 16

/* Keeps every request; deaf to cancel. */
struct slow_store {
    struct aster_request *kept[KEPT_MAX];
    enum aster_operation_kind kinds[KEPT_MAX]; /* also of what has been answered */
    size_t count;
    size_t cancels;
};

static void keep(void *self, struct aster_request *request)
{
    struct slow_store *store = self;
    assert_true(store->count < KEPT_MAX);
    store->kinds[store->count] = request->operation.kind;
    store->kept[store->count++] = request;
}

static void count_cancel(void *self, struct aster_request *request)
{
    (void)request;
    ((struct slow_store *)self)->cancels++;
}

static void close_store(void *self)
{
    (void)self;
}

static aster_status wait_store(void *self, int64_t timeout_ms)
{
    (void)self;
    (void)timeout_ms;
    return ASTER_OK;
}

static const struct aster_serializer_ops ops = {.struct_size = sizeof ops,
                                                .name = "slow",
                                                .traits = ASTER_SERIALIZER_QUEUES_WAITERS,
                                                .submit = keep,
                                                .cancel = count_cancel,
                                                .close = close_store,
                                                .wait = wait_store,
                                                .destroy = close_store};

static struct grantor_state world;
static struct slow_store slow;
static struct grantor_session session;

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&slow, 0, sizeof slow);
    memset(&session, 0, sizeof session);
    world.renewals_end = &world.renewals;
    world.others_end = &world.others;
    assert_int_equal(aster_serializer_create(&ops, &slow, NULL, &world.serializer, NULL), ASTER_OK);
    assert_int_equal(aster_loop_create("flight", &world.loop, NULL), ASTER_OK);
    struct grantor_settings *settings = calloc(1, sizeof *settings);
    assert_non_null(settings);
    assert_int_equal(grantor_admission_create(settings, &world.admission, NULL), ASTER_OK);
    assert_int_equal(grantor_peers_create(&world.peers, NULL), ASTER_OK);
    assert_int_equal(grantor_repeats_create(&world.repeats, NULL), ASTER_OK);
    assert_int_equal(grantor_calls_create(&world.calls, NULL), ASTER_OK);
    assert_int_equal(grantor_reader_create(&world, &world.reader, NULL), ASTER_OK);
    session.state = &world;
    session.failed = true; /* nothing can be sent any more */
    session.peer = grantor_peers_join(world.peers, aster_text("w1"));
    return session.peer == NULL;
}

static int close_world(void **state)
{
    (void)state;
    assert_int_equal(world.flights, 0);
    assert_int_equal(session.peer->in_flight, 0);
    grantor_reader_destroy(world.reader);
    grantor_peers_leave(world.peers, session.peer);
    grantor_peers_destroy(world.peers);
    grantor_repeats_destroy(world.repeats);
    grantor_calls_destroy(world.calls);
    aster_loop_destroy(world.loop);
    aster_serializer_destroy(world.serializer);
    grantor_admission_destroy(world.admission);
    return 0;
}

static struct grantor_flight *start(enum aster_operation_kind kind, const char *resource)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text("w1");
    operation.ttl_ms = 1000;
    operation.epoch = kind == ASTER_OP_ACQUIRE ? 0 : 3;
    operation.request_id[0] = 1;
    struct grantor_flight *flight = grantor_flight_start(&world, &session, 1, &operation, 0, 0);
    assert_non_null(flight);
    return flight;
}

static void answer(size_t slot, bool replayed)
{
    struct aster_request *request = slow.kept[slot];
    struct aster_decision decision = {.struct_size = sizeof decision, .outcome = ASTER_GRANTED, .epoch = 7};
    decision.kind = request->operation.kind;
    decision.replayed = replayed;
    decision.snapshot.resource = request->operation.resource;
    request->complete(request, ASTER_OK, &decision, NULL);
    grantor_flights_submit(&world);
}

/* Each scenario runs on the loop's thread, as the server does; asserting is left to the test's own. */
static aster_status grant_after_leaving(void *argument)
{
    struct grantor_flight *flight = start(ASTER_OP_ACQUIRE, "catalog");
    grantor_flights_submit(&world);
    grantor_flight_abandon(flight);
    answer(0, *(const bool *)argument);
    return ASTER_OK;
}

static aster_status answer_rest(void *argument)
{
    (void)argument;
    answer(1, false);
    return ASTER_OK;
}

static void a_grant_that_finds_nobody_is_given_back(void **state)
{
    (void)state;
    bool replayed = false;
    aster_loop_call(world.loop, grant_after_leaving, &replayed);
    assert_int_equal(slow.count, 2);
    const struct aster_operation *undo = &slow.kept[1]->operation;
    assert_int_equal(undo->kind, ASTER_OP_RELEASE);
    assert_int_equal(undo->epoch, 7);
    assert_true(aster_bytes_equal(undo->caller, aster_text("w1")));
    assert_true(aster_bytes_equal(undo->resource, aster_text("catalog")));
    assert_true(grantor_admission_authorize(undo, world.admission)); /* although "w1" is not admitted (any more) */
    aster_loop_call(world.loop, answer_rest, NULL);
    assert_int_equal(slow.count, 2);
}

/* Another connection of the same client has repeated the request, and may have the answer. */
static void a_replayed_grant_is_not_given_back(void **state)
{
    (void)state;
    bool replayed = true;
    aster_loop_call(world.loop, grant_after_leaving, &replayed);
    assert_int_equal(slow.count, 1);
}

/* The second link's own answer comes after the first one's. */
static aster_status grant_while_it_is_repeated(void *argument)
{
    struct grantor_flight *flight = start(ASTER_OP_ACQUIRE, argument);
    grantor_flights_submit(&world);
    grantor_flight_abandon(flight);
    session.failed = false;
    start(ASTER_OP_ACQUIRE, "catalog");
    grantor_flights_submit(&world);
    answer(0, false);
    session.failed = true; /* there is no link to send on */
    answer(1, true);
    return ASTER_OK;
}

static void a_grant_whose_request_is_being_repeated_is_not_given_back(void **state)
{
    (void)state;
    char resource[] = "catalog";
    aster_loop_call(world.loop, grant_while_it_is_repeated, resource);
    assert_int_equal(slow.count, 2);
    assert_int_equal(slow.kinds[1], ASTER_OP_ACQUIRE);
}

static void another_request_does_not_keep_a_grant_that_finds_nobody(void **state)
{
    (void)state;
    char resource[] = "other";
    aster_loop_call(world.loop, grant_while_it_is_repeated, resource);
    assert_int_equal(slow.count, 3);
    assert_int_equal(slow.kinds[2], ASTER_OP_RELEASE);
    slow.kept[1] = slow.kept[2];
    aster_loop_call(world.loop, answer_rest, NULL);
}

static aster_status grant_that_cannot_be_sent(void *argument)
{
    (void)argument;
    start(ASTER_OP_ACQUIRE, "catalog");
    grantor_flights_submit(&world);
    answer(0, false);
    return ASTER_OK;
}

static void a_grant_that_cannot_be_sent_is_given_back(void **state)
{
    (void)state;
    aster_loop_call(world.loop, grant_that_cannot_be_sent, NULL);
    assert_int_equal(slow.count, 2);
    assert_int_equal(slow.kinds[1], ASTER_OP_RELEASE);
    aster_loop_call(world.loop, answer_rest, NULL);
}

static aster_status leave_before_the_round_ends(void *argument)
{
    (void)argument;
    struct grantor_flight *acquire = start(ASTER_OP_ACQUIRE, "catalog");
    struct grantor_flight *release = start(ASTER_OP_RELEASE, "other");
    grantor_flight_abandon(acquire);
    grantor_flight_abandon(release);
    grantor_flights_submit(&world);
    answer(0, false);
    return ASTER_OK;
}

static void of_a_client_that_left_only_the_acquire_is_dropped(void **state)
{
    (void)state;
    aster_loop_call(world.loop, leave_before_the_round_ends, NULL);
    assert_int_equal(slow.count, 1);
    assert_int_equal(slow.kinds[0], ASTER_OP_RELEASE);
}

static aster_status leave_a_put(void *argument)
{
    static const char value[5000];
    struct aster_operation put = ASTER_OPERATION_INIT;
    put.kind = ASTER_OP_PUT;
    put.resource = aster_text("catalog");
    put.caller = aster_text("w1");
    put.value = (struct aster_bytes){value, sizeof value};
    struct grantor_flight *flight = grantor_flight_start(&world, &session, 1, &put, 0, 0);
    grantor_flights_submit(&world);
    grantor_flight_abandon(flight);
    *(size_t *)argument = session.peer->bytes;
    return ASTER_OK;
}

static aster_status answer_put(void *argument)
{
    (void)argument;
    answer(0, false);
    return ASTER_OK;
}

/* Else who sends, leaves and comes again has everything of before for free. */
static void what_was_left_behind_counts_for_its_identity_until_it_is_answered(void **state)
{
    (void)state;
    size_t bytes = 0;
    aster_loop_call(world.loop, leave_a_put, &bytes);
    assert_in_range(bytes, 5000, 7000);
    assert_int_equal(session.peer->in_flight, 1);
    assert_int_equal(world.flight_bytes, bytes);
    aster_loop_call(world.loop, answer_put, NULL);
    assert_int_equal(session.peer->in_flight, 0);
    assert_int_equal(session.peer->bytes, 0);
    assert_int_equal(world.flight_bytes, 0);
}

static aster_status cancel_twice(void *argument)
{
    struct grantor_flight *flight = start(ASTER_OP_ACQUIRE, argument);
    grantor_flights_submit(&world);
    grantor_flight_cancel(flight);
    grantor_flight_cancel(flight);
    answer(0, false);
    return ASTER_OK;
}

static void a_cancel_that_is_repeated_reaches_the_store_once(void **state)
{
    (void)state;
    char resource[] = "catalog";
    aster_loop_call(world.loop, cancel_twice, resource);
    assert_int_equal(slow.cancels, 1);
    aster_loop_call(world.loop, answer_rest, NULL); /* the grant that could not be sent is given back */
}

enum { WAITERS = 1000 };

/* A store that keeps no queue of its own: the first is denied and parked, and so is the rest without being tried. */
static aster_status park_a_thousand(void *argument)
{
    (void)argument;
    session.failed = false;
    for (int i = 0; i < WAITERS; i++) {
        struct aster_operation acquire = ASTER_OPERATION_INIT;
        acquire.kind = ASTER_OP_ACQUIRE;
        acquire.resource = aster_text("catalog");
        acquire.caller = aster_text("w1");
        acquire.ttl_ms = 1000;
        grantor_flight_start(&world, &session, (uint64_t)i, &acquire, 0, 60000);
        grantor_flights_submit(&world);
        if (i == 0) {
            struct aster_decision denied = {.struct_size = sizeof denied, .kind = ASTER_OP_ACQUIRE};
            denied.outcome = ASTER_DENIED;
            denied.reason = ASTER_REASON_HELD_BY_OTHER;
            denied.snapshot.remaining_ns = INT64_C(60000000000);
            slow.kept[0]->complete(slow.kept[0], ASTER_OK, &denied, NULL);
        }
    }
    return ASTER_OK;
}

static aster_status free_the_resource(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) { /* also when it is said more than once */
        grantor_parking_wake(world.parking, aster_text("catalog"));
        grantor_flights_submit(&world);
    }
    return ASTER_OK;
}

static aster_status close_parking(void *argument)
{
    (void)argument;
    session.failed = true;
    grantor_parking_close(world.parking);
    answer(slow.count - 1, true);
    grantor_parking_destroy(world.parking);
    return ASTER_OK;
}

static void of_a_thousand_parked_one_is_tried_when_the_resource_is_freed(void **state)
{
    (void)state;
    assert_int_equal(grantor_parking_create(world.loop, &world.parking, NULL), ASTER_OK);
    aster_loop_call(world.loop, park_a_thousand, NULL);
    assert_int_equal(slow.count, 1);
    assert_int_equal(world.flights, WAITERS);
    aster_loop_call(world.loop, free_the_resource, NULL);
    assert_int_equal(slow.count, 2);
    aster_loop_call(world.loop, close_parking, NULL);
    assert_int_equal(slow.count, 2);
}

static aster_status mix(void *argument)
{
    (void)argument;
    start(ASTER_OP_ACQUIRE, "a");
    start(ASTER_OP_RENEW, "b");
    start(ASTER_OP_RELEASE, "c");
    start(ASTER_OP_RENEW, "d");
    grantor_flights_submit(&world);
    return ASTER_OK;
}

static aster_status answer_four(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < slow.count; i++) {
        answer(i, slow.kinds[i] == ASTER_OP_ACQUIRE);
    }
    return ASTER_OK;
}

static void renewals_go_first(void **state)
{
    (void)state;
    static const char order[] = "bdac";
    char seen[5] = "";
    aster_loop_call(world.loop, mix, NULL);
    assert_int_equal(slow.count, 4);
    for (size_t i = 0; i < 4; i++) {
        seen[i] = *(const char *)slow.kept[i]->operation.resource.data;
    }
    aster_loop_call(world.loop, answer_four, NULL);
    assert_string_equal(seen, order);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_grant_that_finds_nobody_is_given_back),
        EACH(a_replayed_grant_is_not_given_back),
        EACH(a_grant_whose_request_is_being_repeated_is_not_given_back),
        EACH(another_request_does_not_keep_a_grant_that_finds_nobody),
        EACH(a_grant_that_cannot_be_sent_is_given_back),
        EACH(of_a_client_that_left_only_the_acquire_is_dropped),
        EACH(renewals_go_first),
        EACH(of_a_thousand_parked_one_is_tried_when_the_resource_is_freed),
        EACH(what_was_left_behind_counts_for_its_identity_until_it_is_answered),
        EACH(a_cancel_that_is_repeated_reaches_the_store_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
