/* Safety under random schedules: three machines with drifting clocks, stalls and leaps of time contend for one resource
 * over a network that loses, delays, repeats and reorders. Nobody revokes, so: whenever a handle supplies a fence, the
 * serializer holds the row for it at that very instant, and takes a write under it. */
#include <inttypes.h>
#include <stdlib.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "support/faulty_serializer.h"
#include "support/machine_clock.h"
#include "support/seed.h"
#include "support/unit.h"

#define MACHINES 3
#define SCHEDULES 800
#define STEPS 400
#define DRIFT_PPM 25000 /* what the handles allow for; two clocks of +-1.2 % differ by less */

struct machine {
    struct machine_clock clock;
    struct aster_runtime *runtime;
    struct aster_lease *lease; /* NULL = none at the moment */
    char name[2];
};

struct world {
    uint64_t random;
    struct fake_clock *clock;
    struct machine_clock store_clock;
    struct aster_serializer *store;
    struct faulty_serializer *network;
    unsigned trouble_percent;
    struct machine machines[MACHINES];
    int64_t grants;
    int64_t takeovers;
    int64_t supplied;
};

static int64_t total_grants;
static int64_t total_takeovers;
static int64_t total_supplied;
static int64_t ended[8];

static uint64_t pick(struct world *world, uint64_t count)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return world->random % count;
}

static struct fault trouble(const struct aster_operation *operation, void *user)
{
    struct world *world = user;
    (void)operation;
    if (pick(world, 100) >= world->trouble_percent) {
        return (struct fault){FAULT_NONE, 0, 0};
    }
    static const aster_status failures[] = {ASTER_ERR_BUSY, ASTER_ERR_TIMEOUT, ASTER_ERR_UNREACHABLE,
                                            ASTER_ERR_INDETERMINATE, ASTER_ERR_IO};
    static const enum fault_kind kinds[] = {FAULT_FAIL,       FAULT_BLACK_HOLE,    FAULT_HANG,        FAULT_DELAY_REPLY,
                                            FAULT_LOSE_REPLY, FAULT_DELAY_REQUEST, FAULT_DELAY_REPLY, FAULT_DELAY_REPLY,
                                            FAULT_LATE,       FAULT_TWICE};
    return (struct fault){kinds[pick(world, sizeof kinds / sizeof kinds[0])],
                          failures[pick(world, sizeof failures / sizeof failures[0])], (int64_t)pick(world, 2500)};
}

static aster_status count_write(void *tx, void *user)
{
    (void)tx;
    ++*(int64_t *)user;
    return ASTER_OK;
}

static void check(struct world *world)
{
    for (size_t i = 0; i < MACHINES; i++) {
        const struct machine *machine = &world->machines[i];
        const struct aster_fence *fence = machine->lease != NULL ? aster_lease_fence(machine->lease) : NULL;
        if (fence == NULL) {
            continue;
        }
        struct aster_verdict verdict = ASTER_VERDICT_INIT;
        int64_t before = world->supplied;
        assert_int_equal(
            aster_mutate_fenced(world->store, fence, fence->holder, count_write, &world->supplied, &verdict, NULL),
            ASTER_OK);
        if (verdict.reason != ASTER_REASON_NONE || world->supplied != before + 1) {
            fail_msg("%s supplied a fence of epoch %" PRId64 " that the serializer refuses: %s, epoch %" PRId64,
                     machine->name, fence->epoch, aster_reason_name(verdict.reason), verdict.current_epoch);
        }
    }
}

/* At the very instant of a grant, before anybody else can have heard of it. */
static void observe(const struct aster_operation *operation, const struct aster_decision *decision, void *user)
{
    struct world *world = user;
    if (operation->kind != ASTER_OP_ACQUIRE || decision->outcome != ASTER_GRANTED || decision->replayed) {
        return;
    }
    world->grants++;
    world->takeovers += decision->takeover;
    for (size_t i = 0; i < MACHINES; i++) {
        const struct machine *machine = &world->machines[i];
        if (machine->lease != NULL && aster_lease_fence(machine->lease) != NULL) {
            fail_msg("%s supplies a fence while epoch %" PRId64 " is granted to another", machine->name,
                     decision->epoch);
        }
    }
}

static void set_up(struct world *world, uint64_t seed)
{
    *world = (struct world){.random = seed | 1, .clock = fake_clock_create()};
    machine_clock_init(&world->store_clock, world->clock, (int64_t)pick(world, 24001) - 12000);
    struct aster_memory_options memory = ASTER_MEMORY_OPTIONS_INIT;
    memory.clock = &world->store_clock.clock;
    assert_int_equal(aster_memory_open(&memory, &world->store, NULL), ASTER_OK);
    world->network = faulty_serializer_create(world->store, world->clock, pick(world, 2) == 0);
    world->trouble_percent = (unsigned)pick(world, 60);
    faulty_serializer_script(world->network, trouble, world);
    faulty_serializer_observe(world->network, observe, world);
    for (size_t i = 0; i < MACHINES; i++) {
        struct machine *machine = &world->machines[i];
        machine->name[0] = (char)('A' + i);
        machine_clock_init(&machine->clock, world->clock, (int64_t)pick(world, 24001) - 12000);
        struct aster_runtime_options options = ASTER_RUNTIME_OPTIONS_INIT;
        options.clock = &machine->clock.clock;
        assert_int_equal(aster_runtime_create(&options, &machine->runtime, NULL), ASTER_OK);
    }
}

static void tear_down(struct world *world)
{
    faulty_serializer_script(world->network, NULL, NULL);
    faulty_serializer_always(world->network, (enum aster_operation_kind)0, (struct fault){FAULT_NONE, 0, 0});
    for (size_t i = 0; i < MACHINES; i++) {
        world->machines[i].clock.stalled = false;
        aster_lease_destroy(world->machines[i].lease);
        world->machines[i].lease = NULL;
    }
    faulty_serializer_unhang(world->network);
    fake_clock_advance_ms(world->clock, 30000);
    for (size_t i = 0; i < MACHINES; i++) {
        assert_int_equal(aster_runtime_handles(world->machines[i].runtime), 0);
        aster_runtime_destroy(world->machines[i].runtime);
    }
    total_grants += world->grants;
    total_takeovers += world->takeovers;
    total_supplied += world->supplied;
    faulty_serializer_destroy(world->network);
    aster_serializer_destroy(world->store);
    fake_clock_destroy(world->clock);
}

static void start(struct world *world, struct machine *machine)
{
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = 500 + (int64_t)pick(world, 1500);
    options.margin_ms = 0;
    options.drift_ppm = DRIFT_PPM;
    options.renew_interval_ms = 50 + (int64_t)pick(world, 400);
    options.wait_ms = pick(world, 2) == 0 ? 0 : (int64_t)pick(world, 4000);
    options.request_timeout_ms = 200 + (int64_t)pick(world, 2000);
    options.runtime = machine->runtime;
    assert_int_equal(aster_lease_start(faulty_serializer_serializer(world->network), aster_text("r"),
                                       aster_text(machine->name), &options, &machine->lease, NULL),
                     ASTER_OK);
}

static void act(struct world *world, struct machine *machine)
{
    if (machine->lease == NULL) {
        start(world, machine);
        return;
    }
    struct aster_lease_report report;
    aster_lease_report_get(machine->lease, &report);
    bool over = report.status != ASTER_LEASE_ACQUIRING && report.status != ASTER_LEASE_HELD;
    uint64_t action = pick(world, 12);
    if (over || action == 0) {
        ended[report.status]++;
        aster_lease_destroy(machine->lease);
        machine->lease = NULL;
    } else if (action == 1) {
        aster_lease_release(machine->lease, 0, NULL, NULL);
    } else if (action == 2) {
        aster_lease_cancel(machine->lease);
    } else if (action == 3) {
        aster_lease_drop(machine->lease);
    } else if (action == 4) {
        aster_lease_quiesce(machine->lease);
    } else if (action <= 6) {
        machine->clock.stalled = !machine->clock.stalled;
    }
}

static void pass_time(struct world *world)
{
    switch (pick(world, 20)) {
    case 0:
        fake_clock_leap_ms(world->clock, (int64_t)pick(world, 5000));
        break;
    case 1:
        faulty_serializer_unhang(world->network);
        break;
    case 2:
        world->trouble_percent = (unsigned)pick(world, 100);
        break;
    default:
        fake_clock_advance_ns(world->clock, (int64_t)pick(world, 120000000));
    }
}

static void a_supplied_fence_is_one_that_the_serializer_takes_at_that_instant(void **state)
{
    (void)state;
    uint64_t first = test_seed(7);
    for (uint64_t schedule = 0; schedule < SCHEDULES; schedule++) {
        static struct world world; /* clocks in it must not move */
        set_up(&world, (first + schedule) * UINT64_C(0x9e3779b97f4a7c15));
        for (int step = 0; step < STEPS; step++) {
            act(&world, &world.machines[pick(&world, MACHINES)]);
            check(&world);
            pass_time(&world);
            check(&world);
        }
        tear_down(&world);
    }
    /* It would be no test if the schedules did not get anywhere. */
    assert_true(total_grants > 10 * SCHEDULES);
    assert_true(total_takeovers > 2 * SCHEDULES);
    assert_true(total_supplied > 20 * SCHEDULES);
    assert_true(ended[ASTER_LEASE_LOST] > SCHEDULES / 2);
    assert_true(ended[ASTER_LEASE_RELEASED] > SCHEDULES / 2);
    assert_true(ended[ASTER_LEASE_NOT_GRANTED] > SCHEDULES / 2);
    print_message("%" PRId64 " grants, %" PRId64 " takeovers, %" PRId64 " fences supplied and taken\n", total_grants,
                  total_takeovers, total_supplied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_supplied_fence_is_one_that_the_serializer_takes_at_that_instant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
