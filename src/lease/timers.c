/* The heap of timers: which handle wants to run next. A handle in the heap has one reference for it. */
#include "base/alloc.h"
#include "lease/handle.h"

static void place(struct aster_runtime *runtime, size_t at, struct aster_lease *lease)
{
    runtime->timers[at] = lease;
    lease->timer_slot = at + 1;
}

static void sift_up(struct aster_runtime *runtime, size_t at)
{
    struct aster_lease *lease = runtime->timers[at];
    while (at > 0 && runtime->timers[(at - 1) / 2]->next_ns > lease->next_ns) {
        place(runtime, at, runtime->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(runtime, at, lease);
}

static void sift_down(struct aster_runtime *runtime, size_t at)
{
    struct aster_lease *lease = runtime->timers[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= runtime->timer_count) {
            break;
        }
        if (child + 1 < runtime->timer_count && runtime->timers[child + 1]->next_ns < runtime->timers[child]->next_ns) {
            child++;
        }
        if (lease->next_ns <= runtime->timers[child]->next_ns) {
            break;
        }
        place(runtime, at, runtime->timers[child]);
        at = child;
    }
    place(runtime, at, lease);
}

bool lease_timers_reserve(struct aster_runtime *runtime, size_t handles)
{
    if (handles <= runtime->timer_capacity) {
        return true;
    }
    size_t capacity = handles + handles / 2 + 16;
    struct aster_lease **timers = aster_realloc(runtime->timers, capacity * sizeof(struct aster_lease *));
    if (timers == NULL) {
        return false;
    }
    runtime->timers = timers;
    runtime->timer_capacity = capacity;
    return true;
}

static void remove_timer(struct aster_lease *lease)
{
    struct aster_runtime *runtime = lease->runtime;
    size_t at = lease->timer_slot - 1;
    lease->timer_slot = 0;
    size_t last = --runtime->timer_count;
    if (at != last) {
        place(runtime, at, runtime->timers[last]);
        sift_up(runtime, at);
        sift_down(runtime, at);
    }
    lease_unref(lease);
}

void lease_timer_set(struct aster_lease *lease, int64_t next_ns)
{
    struct aster_runtime *runtime = lease->runtime;
    if (next_ns == NEVER || runtime->orphaned) { /* nobody would run it */
        if (lease->timer_slot != 0) {
            remove_timer(lease);
        }
        lease->next_ns = NEVER;
        return;
    }
    lease->next_ns = next_ns;
    if (lease->timer_slot == 0) {
        lease->references++;
        place(runtime, runtime->timer_count++, lease);
    }
    sift_up(runtime, lease->timer_slot - 1);
    sift_down(runtime, lease->timer_slot - 1);
}
