/* Arithmetic on times and counters that saturates instead of wrapping. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

#define ASTER_NS_PER_MS INT64_C(1000000)

static inline int64_t aster_add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return b > 0 ? INT64_MAX : INT64_MIN;
    }
    return sum;
}

static inline int64_t aster_ms_to_ns(int64_t ms)
{
    int64_t ns;
    if (__builtin_mul_overflow(ms, ASTER_NS_PER_MS, &ns)) {
        return ms > 0 ? INT64_MAX : INT64_MIN;
    }
    return ns;
}

/* *counter + 1, or false at INT64_MAX with *counter unchanged. */
static inline bool aster_increment(int64_t *counter)
{
    if (*counter == INT64_MAX) {
        return false;
    }
    *counter += 1;
    return true;
}

#endif
