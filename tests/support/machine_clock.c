#include "support/machine_clock.h"

#include <stdlib.h>

static int64_t to_machine_ns(const struct machine_clock *machine, int64_t base_ns)
{
    int64_t passed_ns = base_ns - machine->from_ns;
    return machine->from_ns + passed_ns + passed_ns / 1000000 * machine->ppm +
           passed_ns % 1000000 * machine->ppm / 1000000;
}

static int64_t now_ns(void *self)
{
    const struct machine_clock *machine = self;
    return to_machine_ns(machine, aster_clock_now_ns(machine->base));
}

static int64_t unix_ms(void *self)
{
    const struct machine_clock *machine = self;
    return aster_clock_unix_ms(machine->base);
}

static int64_t wake(void *user)
{
    struct machine_clock *machine = user;
    if (machine->stalled) {
        return INT64_MAX;
    }
    int64_t next_ns = machine->wake(machine->user);
    if (next_ns == INT64_MAX) {
        return next_ns;
    }
    int64_t ahead_ns = next_ns - now_ns(machine);
    int64_t base_ns = aster_clock_now_ns(machine->base);
    if (ahead_ns > 0) {
        base_ns += ahead_ns - ahead_ns / 1000000 * machine->ppm; /* about; then exactly */
        while (to_machine_ns(machine, base_ns) < next_ns) {
            base_ns += 1 + (next_ns - to_machine_ns(machine, base_ns)) / 2;
        }
    }
    return base_ns;
}

static void subscribe(void *self, int64_t (*wake_subscriber)(void *user), void *user)
{
    struct machine_clock *machine = self;
    if (machine->wake != NULL) {
        abort();
    }
    machine->wake = wake_subscriber;
    machine->user = user;
    machine->base->ops->subscribe(machine->base->self, wake, machine);
}

static void unsubscribe(void *self, void *user)
{
    struct machine_clock *machine = self;
    (void)user;
    machine->base->ops->unsubscribe(machine->base->self, machine);
    machine->wake = NULL;
}

void machine_clock_init(struct machine_clock *machine, struct fake_clock *base, int64_t ppm)
{
    static const struct aster_clock_ops ops = {sizeof ops, now_ns, unix_ms, subscribe, unsubscribe};
    *machine = (struct machine_clock){
        .clock = {&ops, machine}, .base = fake_clock_clock(base), .from_ns = fake_clock_now_ns(base), .ppm = ppm};
}
