#include "support/lease_world.h"

#include <stdlib.h>

static int set_up(void **state, bool queues)
{
    struct lease_world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->clock = fake_clock_create();
    struct aster_memory_options memory = ASTER_MEMORY_OPTIONS_INIT;
    memory.clock = fake_clock_clock(world->clock);
    assert_int_equal(aster_memory_open(&memory, &world->store, NULL), ASTER_OK);
    world->path = faulty_serializer_create(world->store, world->clock, queues);
    struct aster_runtime_options options = ASTER_RUNTIME_OPTIONS_INIT;
    options.clock = memory.clock;
    assert_int_equal(aster_runtime_create(&options, &world->runtime, NULL), ASTER_OK);
    world->options = (struct aster_lease_options)ASTER_LEASE_OPTIONS_INIT;
    world->options.ttl_ms = 10000;
    world->options.renew_interval_ms = 3000;
    world->options.margin_ms = 1000;
    world->options.runtime = world->runtime;
    world->began_ns = fake_clock_now_ns(world->clock);
    *state = world;
    return 0;
}

int lease_world_set_up(void **state)
{
    return set_up(state, false);
}

int lease_world_set_up_queueing(void **state)
{
    return set_up(state, true);
}

int lease_world_tear_down(void **state)
{
    struct lease_world *world = *state;
    faulty_serializer_unhang(world->path);
    assert_int_equal(aster_runtime_handles(world->runtime), 0);
    aster_runtime_destroy(world->runtime);
    faulty_serializer_destroy(world->path);
    aster_serializer_destroy(world->store);
    fake_clock_destroy(world->clock);
    free(world);
    return 0;
}

struct aster_lease *lease_world_acquire(struct lease_world *world, const char *holder)
{
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_lease_acquire(faulty_serializer_serializer(world->path), aster_text("r"),
                                              aster_text(holder), &world->options, &lease, NULL, &error);
    if (status != ASTER_OK) {
        fail_msg("acquire failed: %s", error.message);
    }
    return lease;
}

int64_t lease_world_grant_to(struct lease_world *world, const char *holder)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text("r");
    operation.caller = aster_text(holder);
    operation.ttl_ms = 10000;
    assert_int_equal(aster_serializer_call(world->store, &operation, 1000, &reply, NULL), ASTER_OK);
    int64_t epoch = reply.decision.outcome == ASTER_GRANTED ? reply.decision.epoch : -1;
    aster_reply_fini(&reply);
    return epoch;
}

void lease_world_revoke(struct lease_world *world)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_revoke(world->store, aster_text("r"), aster_text("operator"), -1, &reply, NULL), ASTER_OK);
    assert_int_equal(reply.decision.outcome, ASTER_GRANTED);
    aster_reply_fini(&reply);
}

struct aster_lease_report lease_world_report(const struct aster_lease *lease)
{
    struct aster_lease_report report;
    aster_lease_report_get(lease, &report);
    return report;
}

struct aster_snapshot lease_world_row(struct lease_world *world)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_inspect(world->store, aster_text("r"), &reply, NULL), ASTER_OK);
    struct aster_snapshot snapshot = reply.decision.snapshot;
    snapshot.resource = snapshot.holder = snapshot.value = snapshot.last_holder = (struct aster_bytes){NULL, 0};
    aster_reply_fini(&reply);
    return snapshot;
}

int64_t lease_world_elapsed_ms(const struct lease_world *world)
{
    return (fake_clock_now_ns(world->clock) - world->began_ns) / 1000000;
}

static aster_status count_write(void *tx, void *user)
{
    (void)tx;
    ++*(int *)user;
    return ASTER_OK;
}

enum aster_reason lease_world_write(struct lease_world *world, const struct aster_fence *fence, int *data)
{
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    assert_int_equal(aster_mutate_fenced(world->store, fence, fence->holder, count_write, data, &verdict, NULL),
                     ASTER_OK);
    return verdict.reason;
}
