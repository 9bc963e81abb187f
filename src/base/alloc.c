#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static _Atomic(long) calls_left = -1;

static bool refuse(void)
{
    long left = atomic_load_explicit(&calls_left, memory_order_relaxed);
    if (left < 0) {
        return false;
    }
    if (left == 0) {
        return true;
    }
    atomic_store_explicit(&calls_left, left - 1, memory_order_relaxed);
    return false;
}

void *aster_alloc(size_t size)
{
    return refuse() ? NULL : malloc(size);
}

void *aster_realloc(void *memory, size_t size)
{
    return refuse() ? NULL : realloc(memory, size);
}

void aster_alloc_fail_after(long calls)
{
    atomic_store_explicit(&calls_left, calls, memory_order_relaxed);
}
