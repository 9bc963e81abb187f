#include "aster/sys/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now); /* cannot fail for these two clocks on Linux >= 2.6.39 */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t system_now_ns(void *self)
{
    (void)self;
    return read_ns(CLOCK_BOOTTIME);
}

static int64_t system_unix_ms(void *self)
{
    (void)self;
    return read_ns(CLOCK_REALTIME) / 1000000;
}

const struct aster_clock *aster_clock_system(void)
{
    static const struct aster_clock_ops ops = {sizeof ops, system_now_ns, system_unix_ms, NULL, NULL};
    static const struct aster_clock clock = {&ops, NULL};
    return &clock;
}
