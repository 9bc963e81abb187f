/* One virtual clock, the memory serializer, a faulty path to it and a runtime: the stage of the handle's tests. */
#ifndef SUPPORT_LEASE_WORLD_H
#define SUPPORT_LEASE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aster/aster.h"
#include "aster/sys/runtime.h"
#include "support/fake_clock.h"
#include "support/faulty_serializer.h"

struct lease_world {
    struct fake_clock *clock;
    struct aster_serializer *store; /* memory */
    struct faulty_serializer *path; /* to the store */
    struct aster_runtime *runtime;
    struct aster_lease_options options; /* ttl 10 s, renew every 3 s, margin 1 s, wait 0, this runtime */
    int64_t began_ns;
};

int lease_world_set_up(void **state);
int lease_world_set_up_queueing(void **state); /* the path passes on that the store keeps waiters */
int lease_world_tear_down(void **state);       /* asserts that no handle is left */

/* Acquire "r" over the faulty path; NULL when denied; the test fails on an error. */
struct aster_lease *lease_world_acquire(struct lease_world *world, const char *holder);
/* Acquire straight at the store, as another process with a sound network would. */
int64_t lease_world_grant_to(struct lease_world *world, const char *holder);
void lease_world_revoke(struct lease_world *world);
struct aster_lease_report lease_world_report(const struct aster_lease *lease);
struct aster_snapshot lease_world_row(struct lease_world *world); /* holder not filled in */
int64_t lease_world_elapsed_ms(const struct lease_world *world);
/* A write under the fence, as the resource would check it. */
enum aster_reason lease_world_write(struct lease_world *world, const struct aster_fence *fence, int *data);

#define LEASE_TEST(name) cmocka_unit_test_setup_teardown(name, lease_world_set_up, lease_world_tear_down)
#define LEASE_TEST_QUEUEING(name)                                                                                      \
    cmocka_unit_test_setup_teardown(name, lease_world_set_up_queueing, lease_world_tear_down)

#endif
