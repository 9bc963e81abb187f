/* Random operations, failing appends and crashes against what was acknowledged. Acknowledged is never lost, epochs
 * never go back, no epoch has two holders, no answer comes before what it tells is stored, every request is answered
 * once. */
#include <stdlib.h>

#include "journal/journalled.h"
#include "support/fake_clock.h"
#include "support/fake_journal.h"
#include "support/requests.h"
#include "support/seed.h"
#include "support/unit.h"

enum { RESOURCES = 4, CALLERS = 3, OPEN_MAX = 24, STEPS = 4000, SEEDS = 4, EPOCHS_MAX = 65536, TTL_MS = 1000 };

static const char *const resources[RESOURCES] = {"r0", "r1", "r2", "r3"};
static const char *const callers[CALLERS] = {"a", "b", "c"};
static const char *const values[] = {"", "one", "twotwo"};

/* What the world has been told of a resource. */
struct known {
    int64_t epoch; /* the greatest heard of */
    bool exact;    /* nothing of unknown outcome touched it since: the row is this one */
    bool exists;
    bool held;
    int holder;
    int64_t value_revision;
    signed char holder_of[EPOCHS_MAX]; /* by epoch; -1 = nobody was granted it */
};

struct world {
    uint64_t seed;
    struct fake_clock *clock;
    struct fake_store store;
    struct fake_image image;
    struct aster_serializer *serializer;
    struct call *calls[OPEN_MAX];
    struct known known[RESOURCES];
    bool crashing;
    size_t answered;
    size_t failed;
    size_t unknown;
    size_t crashes;
    uint64_t next_id;
    uint64_t undone;
};

struct call {
    struct aster_request request;
    struct world *world;
    int resource;
    int caller;
    bool answered;
};

static int pick(struct world *world, int count)
{
    world->seed ^= world->seed << 13;
    world->seed ^= world->seed >> 7;
    world->seed ^= world->seed << 17;
    return (int)(world->seed % (uint64_t)count);
}

static int caller_of(struct aster_bytes name)
{
    return name.size == 0 ? -1 : *(const char *)name.data - 'a';
}

/* The answer tells of no more than what is stored at this instant. */
static void check_durable(struct world *world, const struct aster_decision *decision, struct aster_bytes resource)
{
    const struct aster_snapshot *told = &decision->snapshot;
    fake_store_read(&world->store, &world->image);
    const struct fake_row *row = fake_image_find(&world->image, resource);
    if (row == NULL) {
        assert_true(told->epoch <= world->image.floor);
        return;
    }
    assert_true(told->epoch <= row->row.epoch);
    if (told->epoch == row->row.epoch) {
        assert_true(told->value_revision <= row->row.value_revision);
        assert_int_equal(told->held, row->row.held);
        assert_int_equal(caller_of(told->holder), caller_of(row->row.holder));
    }
}

static void learn(struct world *world, struct call *call, const struct aster_decision *decision)
{
    struct known *known = &world->known[call->resource];
    const struct aster_snapshot *told = &decision->snapshot;
    assert_true(told->epoch >= known->epoch);
    known->epoch = told->epoch;
    bool changes = decision->outcome == ASTER_GRANTED && !decision->replayed && decision->kind != ASTER_OP_RENEW &&
                   decision->kind != ASTER_OP_INSPECT;
    if (decision->kind == ASTER_OP_ACQUIRE && changes) {
        assert_true(decision->epoch < EPOCHS_MAX);
        assert_int_equal(known->holder_of[decision->epoch], -1); /* never two holders of one epoch */
        known->holder_of[decision->epoch] = (signed char)call->caller;
    }
    if (changes) {
        known->exact = true;
        known->exists = decision->kind != ASTER_OP_FORGET;
        known->held = told->held;
        known->holder = caller_of(told->holder);
        known->value_revision = told->value_revision;
    } else if (known->exact && known->exists) {
        assert_int_equal(told->held, known->held);
        assert_int_equal(caller_of(told->holder), known->holder);
        assert_int_equal(told->value_revision, known->value_revision);
    }
}

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct call *call = request->user;
    struct world *world = call->world;
    (void)error;
    assert_false(call->answered);
    call->answered = true;
    if (world->crashing) {
        return; /* nobody hears it */
    }
    world->answered++;
    if (status == ASTER_OK) {
        check_durable(world, decision, request->operation.resource);
        learn(world, call, decision);
    } else if (status == ASTER_ERR_INDETERMINATE) {
        world->known[call->resource].exact = false;
        world->unknown++;
    } else {
        assert_true(status == ASTER_ERR_IO || status == ASTER_ERR_TIMEOUT || status == ASTER_ERR_CLOSED ||
                    status == ASTER_ERR_CANCELLED);
        world->failed++;
    }
}

static void open_world(struct world *world)
{
    struct aster_journalled_options options = ASTER_JOURNALLED_OPTIONS_INIT;
    const struct aster_journal journal = fake_journal(&world->store);
    options.memory.clock = fake_clock_clock(world->clock);
    options.memory.limits.ttl_min_ms = 1;
    options.memory.stripes = 2;
    options.stepped = true;
    assert_int_equal(aster_journalled_open(&options, &journal, &world->serializer, NULL), ASTER_OK);
}

static struct aster_operation choose(struct world *world, struct call *call)
{
    static const enum aster_operation_kind kinds[] = {
        ASTER_OP_ACQUIRE, ASTER_OP_ACQUIRE, ASTER_OP_ACQUIRE, ASTER_OP_RENEW,  ASTER_OP_RENEW,  ASTER_OP_RELEASE,
        ASTER_OP_RELEASE, ASTER_OP_PUT,     ASTER_OP_REVOKE,  ASTER_OP_FORGET, ASTER_OP_INSPECT};
    const struct known *known = &world->known[call->resource];
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kinds[pick(world, sizeof kinds / sizeof kinds[0])];
    if (known->held && pick(world, 4) > 0) {
        call->caller = known->holder;
    }
    operation.resource = aster_text(resources[call->resource]);
    operation.caller = aster_text(callers[call->caller]);
    operation.ttl_ms = operation.kind == ASTER_OP_ACQUIRE ? TTL_MS : 0;
    bool carries =
        operation.kind == ASTER_OP_RENEW || operation.kind == ASTER_OP_RELEASE || operation.kind == ASTER_OP_PUT;
    operation.epoch = carries ? known->epoch : 0;
    if (operation.kind == ASTER_OP_PUT) {
        operation.holder = operation.caller;
        operation.value = aster_text(values[pick(world, 3)]);
        operation.value_revision = known->value_revision;
    }
    world->next_id++;
    memcpy(operation.request_id, &world->next_id, sizeof world->next_id);
    return operation;
}

static void submit(struct world *world, int slot)
{
    struct call *call = calloc(1, sizeof *call);
    assert_non_null(call);
    call->world = world;
    call->resource = pick(world, RESOURCES);
    call->caller = pick(world, CALLERS);
    call->request = (struct aster_request)ASTER_REQUEST_INIT;
    call->request.operation = choose(world, call);
    call->request.complete = complete;
    call->request.user = call;
    int64_t now_ns = fake_clock_now_ns(world->clock);
    call->request.deadline_ns = now_ns + INT64_C(5000000000);
    if (call->request.operation.kind == ASTER_OP_ACQUIRE && pick(world, 2) == 0) {
        call->request.wait_until_ns = now_ns + (1 + pick(world, 3000)) * INT64_C(1000000);
    }
    world->calls[slot] = call;
    aster_serializer_submit(world->serializer, &call->request);
}

static void append_once(struct world *world)
{
    int luck = pick(world, 20);
    world->store.next = luck < 14   ? FAKE_APPEND_STORE
                        : luck < 17 ? FAKE_APPEND_FAIL
                        : luck < 19 ? FAKE_APPEND_UNKNOWN
                                    : FAKE_APPEND_UNKNOWN_LOST;
    aster_journalled_step(world->serializer);
}

static void collect(struct world *world)
{
    for (int i = 0; i < OPEN_MAX; i++) {
        if (world->calls[i] != NULL && world->calls[i]->answered) {
            free(world->calls[i]);
            world->calls[i] = NULL;
        }
    }
}

static void check_after_crash(struct world *world, int resource)
{
    struct known *known = &world->known[resource];
    struct asked look;
    ask(world->serializer, &look, op_inspect(resources[resource]), 0);
    assert_int_equal(look.status, ASTER_OK);
    const struct aster_snapshot *row = &look.reply.decision.snapshot;
    assert_true(row->epoch >= known->epoch);
    if (known->exact && known->exists) {
        assert_int_equal(row->epoch, known->epoch);
        assert_int_equal(row->held, known->held);
        assert_int_equal(caller_of(row->holder), known->holder);
        assert_int_equal(row->value_revision, known->value_revision);
    }
    if (row->held) { /* whoever holds it has a full ttl to say so */
        assert_int_equal(row->remaining_ns, TTL_MS * INT64_C(1000000));
    }
    known->epoch = row->epoch;
    known->exists = row->held || row->value_revision > 0;
    known->exact = known->exists;
    known->held = row->held;
    known->holder = caller_of(row->holder);
    known->value_revision = row->value_revision;
    asked_fini(&look);
}

static void crash(struct world *world)
{
    world->crashes++;
    world->undone += aster_journalled_counts(world->serializer).undone;
    world->crashing = true;
    world->store.next = FAKE_APPEND_FAIL; /* nothing of what is still in memory is written */
    aster_serializer_close(world->serializer);
    aster_journalled_step(world->serializer); /* what was decided anew is told that the serializer is closed */
    aster_serializer_destroy(world->serializer);
    collect(world);
    for (int i = 0; i < OPEN_MAX; i++) {
        assert_null(world->calls[i]); /* every one was answered, if only that the serializer is closed */
    }
    world->crashing = false;
    open_world(world);
    for (int i = 0; i < RESOURCES; i++) {
        check_after_crash(world, i);
    }
}

static void end(struct world *world)
{
    world->store.next = FAKE_APPEND_STORE;
    aster_serializer_close(world->serializer);
    while (aster_journalled_step(world->serializer)) {
    }
    collect(world);
    for (int i = 0; i < OPEN_MAX; i++) {
        assert_null(world->calls[i]);
    }
    aster_serializer_destroy(world->serializer);
    fake_store_fini(&world->store);
    fake_clock_destroy(world->clock);
}

static void acknowledged_is_never_lost_whatever_the_journal_does(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world *world = calloc(1, sizeof *world);
        assert_non_null(world);
        world->seed = test_seed(seed * 7919);
        world->clock = fake_clock_create();
        fake_store_init(&world->store);
        for (int i = 0; i < RESOURCES; i++) {
            world->known[i].holder = -1;
            memset(world->known[i].holder_of, -1, EPOCHS_MAX);
        }
        open_world(world);
        for (int step = 0; step < STEPS; step++) {
            int what = pick(world, 100);
            int slot = pick(world, OPEN_MAX);
            if (what < 55 && world->calls[slot] == NULL) {
                submit(world, slot);
            } else if (what < 60 && world->calls[slot] != NULL) {
                aster_serializer_cancel(world->serializer, &world->calls[slot]->request);
            } else if (what < 80) {
                append_once(world);
            } else if (what < 99) {
                fake_clock_advance_ms(world->clock, pick(world, 300));
            } else if (pick(world, 4) == 0) {
                crash(world);
            }
            collect(world);
        }
        world->undone += aster_journalled_counts(world->serializer).undone;
        assert_true(world->answered > STEPS / 5); /* it did what it is for */
        assert_true(world->failed > 0 && world->unknown > 0 && world->undone > 0 && world->crashes > 0);
        end(world);
        free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_is_never_lost_whatever_the_journal_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
