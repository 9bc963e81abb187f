#include <stdlib.h>

#include "base/alloc.h"
#include "engine/table_internal.h"

static void place(struct aster_deadlines *deadlines, uint32_t at, struct aster_deadline deadline)
{
    deadlines->heap[at] = deadline;
    deadline.entry->deadline_slot = at + 1;
}

static void sift_up(struct aster_deadlines *deadlines, uint32_t at)
{
    struct aster_deadline moving = deadlines->heap[at];
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (deadlines->heap[parent].at_ns <= moving.at_ns) {
            break;
        }
        place(deadlines, at, deadlines->heap[parent]);
        at = parent;
    }
    place(deadlines, at, moving);
}

static void sift_down(struct aster_deadlines *deadlines, uint32_t at)
{
    struct aster_deadline moving = deadlines->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= deadlines->count) {
            break;
        }
        if (child + 1 < deadlines->count && deadlines->heap[child + 1].at_ns < deadlines->heap[child].at_ns) {
            child++;
        }
        if (moving.at_ns <= deadlines->heap[child].at_ns) {
            break;
        }
        place(deadlines, at, deadlines->heap[child]);
        at = child;
    }
    place(deadlines, at, moving);
}

bool aster_deadlines_reserve(struct aster_deadlines *deadlines, size_t entries)
{
    if (deadlines->off || entries <= deadlines->capacity) {
        return true;
    }
    /* A quarter more, not twice: at a million leases the unused tail is what memory per lease is made of. */
    size_t capacity = entries + entries / 4 + 16;
    if (capacity > UINT32_MAX) {
        return false;
    }
    struct aster_deadline *heap = aster_realloc(deadlines->heap, capacity * sizeof *heap);
    if (heap == NULL) {
        return false;
    }
    deadlines->heap = heap;
    deadlines->capacity = (uint32_t)capacity;
    return true;
}

void aster_deadlines_arm(struct aster_deadlines *deadlines, struct aster_entry *entry)
{
    int64_t at_ns = aster_entry_deadline_ns(entry);
    if (deadlines->off) {
        return;
    }
    if (entry->deadline_slot == 0) {
        uint32_t at = deadlines->count++;
        place(deadlines, at, (struct aster_deadline){at_ns, entry});
        sift_up(deadlines, at);
    } else if (at_ns < deadlines->heap[entry->deadline_slot - 1].at_ns) {
        deadlines->heap[entry->deadline_slot - 1].at_ns = at_ns;
        sift_up(deadlines, entry->deadline_slot - 1);
    }
}

void aster_deadlines_remove(struct aster_deadlines *deadlines, struct aster_entry *entry)
{
    if (entry->deadline_slot == 0) {
        return;
    }
    uint32_t at = entry->deadline_slot - 1;
    entry->deadline_slot = 0;
    uint32_t last = --deadlines->count;
    if (at == last) {
        return;
    }
    place(deadlines, at, deadlines->heap[last]);
    sift_up(deadlines, at);
    sift_down(deadlines, at);
}

struct aster_entry *aster_deadlines_pop_expired(struct aster_deadlines *deadlines, int64_t now_ns)
{
    while (deadlines->count > 0 && deadlines->heap[0].at_ns <= now_ns) {
        struct aster_entry *entry = deadlines->heap[0].entry;
        int64_t true_ns = aster_entry_deadline_ns(entry);
        if (entry->held && true_ns > now_ns) {
            deadlines->heap[0].at_ns = true_ns;
            sift_down(deadlines, 0);
            continue;
        }
        aster_deadlines_remove(deadlines, entry);
        if (entry->held) {
            return entry;
        }
    }
    return NULL;
}
