/* The handle: what a fence costs beside one clock read, and 100,000 handles renewed by one thread without a missed
 * limit. Exits 1 when a bound is broken. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aster/lease.h"
#include "aster/memory.h"
#include "aster/sys/clock.h"
#include "aster/sys/runtime.h"
#include "physical.h"

#define FENCES 4000000
#define ROUNDS 9        /* of which the quietest counts: other programs only ever add */
#define FENCE_BOUND 2.0 /* x one clock read */
#define HANDLES 100000
#define TTL_MS 6000 /* renewed every 2 s: 50,000 renewals per second */
#define HOLD_MS 12000
#define LOOK_MS 250

static bool failed;

static void verdict(bool good)
{
    failed = failed || !good;
    puts(good ? "PASS" : "FAIL");
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_lease: %s: %s\n", what, why);
    exit(2);
}

static struct aster_serializer *open_memory(void)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_memory_open(NULL, &serializer, &error) != ASTER_OK) {
        fail("open", error.message);
    }
    return serializer;
}

static struct aster_lease *acquire(struct aster_serializer *serializer, size_t number,
                                   const struct aster_lease_options *options)
{
    char name[32];
    int size = snprintf(name, sizeof name, "resource/%011zu", number);
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_bytes resource = {name, (size_t)size};
    if (aster_lease_acquire(serializer, resource, aster_text("holder"), options, &lease, NULL, &error) != ASTER_OK ||
        lease == NULL) {
        fail(name, error.message);
    }
    return lease;
}

static double fences_ns(const struct aster_lease *lease)
{
    uint64_t supplied = 0;
    int64_t begin_ns = bench_now_ns();
    for (size_t i = 0; i < FENCES / ROUNDS; i++) {
        supplied += aster_lease_fence(lease) != NULL;
    }
    int64_t end_ns = bench_now_ns();
    if (supplied != FENCES / ROUNDS) {
        fail("fence", "the lease was not held throughout");
    }
    return (double)(end_ns - begin_ns) / (FENCES / ROUNDS);
}

static void measure_fence(void)
{
    struct aster_serializer *serializer = open_memory();
    struct aster_lease *lease = acquire(serializer, 0, NULL);
    double fence = 1e9;
    double clock_read = 1e9;
    for (int i = 0; i < ROUNDS; i++) { /* in turns, so that both meet the same machine */
        double read_ns = bench_clock_read_ns();
        double ns = fences_ns(lease);
        clock_read = read_ns < clock_read ? read_ns : clock_read;
        fence = ns < fence ? ns : fence;
    }
    printf("fence: %.1f ns, clock read %.1f ns, ratio %.2f, bound %.1f: ", fence, clock_read, fence / clock_read,
           FENCE_BOUND);
    verdict(fence <= FENCE_BOUND * clock_read);
    aster_lease_destroy(lease);
    aster_serializer_destroy(serializer);
}

static size_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* What the serializer takes for its own rows, to be subtracted. */
static size_t row_bytes(void)
{
    size_t before = allocated_bytes();
    struct aster_serializer *serializer = open_memory();
    for (size_t i = 0; i < HANDLES; i++) {
        char name[32];
        int size = snprintf(name, sizeof name, "resource/%011zu", i);
        struct aster_operation operation = ASTER_OPERATION_INIT;
        struct aster_reply reply = ASTER_REPLY_INIT;
        operation.kind = ASTER_OP_ACQUIRE;
        operation.resource = (struct aster_bytes){name, (size_t)size};
        operation.caller = aster_text("holder");
        operation.ttl_ms = TTL_MS;
        if (aster_serializer_call(serializer, &operation, 0, &reply, NULL) != ASTER_OK) {
            fail(name, "not acquired");
        }
        aster_reply_fini(&reply);
    }
    size_t taken = allocated_bytes() - before;
    aster_serializer_destroy(serializer);
    return taken;
}

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

struct tally {
    size_t held;
    size_t supplied;
    int64_t renewals;
    int64_t errors;
    int64_t least_remaining_ns;
};

static struct tally look(struct aster_lease **leases)
{
    struct tally tally = {.least_remaining_ns = INT64_MAX};
    for (size_t i = 0; i < HANDLES; i++) {
        struct aster_lease_report report;
        tally.supplied += aster_lease_fence(leases[i]) != NULL;
        aster_lease_report_get(leases[i], &report);
        tally.held += report.status == ASTER_LEASE_HELD;
        tally.renewals += report.renewals;
        tally.errors += report.renew_errors;
        if (report.remaining_ns < tally.least_remaining_ns) {
            tally.least_remaining_ns = report.remaining_ns;
        }
    }
    return tally;
}

static void sleep_ms(int64_t ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Between two looks nobody but the renewer runs, so that the process's CPU time is its. */
static void hold_all(struct aster_lease **leases)
{
    double used = 0;
    int64_t begin_ns = bench_now_ns();
    int64_t idle_ns = 0;
    int64_t least_ns = INT64_MAX;
    bool all = true;
    struct tally tally = {0};
    while (bench_now_ns() - begin_ns < HOLD_MS * INT64_C(1000000)) {
        double before = cpu_seconds();
        int64_t from_ns = bench_now_ns();
        sleep_ms(LOOK_MS);
        idle_ns += bench_now_ns() - from_ns;
        used += cpu_seconds() - before;
        tally = look(leases);
        all = all && tally.held == HANDLES && tally.supplied == HANDLES && tally.errors == 0;
        least_ns = tally.least_remaining_ns < least_ns ? tally.least_remaining_ns : least_ns;
    }
    double seconds = (double)idle_ns / 1e9;
    printf("%d handles, ttl %d ms, %.0f s: %" PRId64 " renewals, %.1f %% of one CPU, closest to the limit %.0f ms: ",
           HANDLES, TTL_MS, (double)HOLD_MS / 1e3, tally.renewals, 100 * used / seconds, (double)least_ns / 1e6);
    verdict(all && tally.renewals >= HANDLES * (int64_t)(HOLD_MS / (TTL_MS / 3) - 1));
}

static void measure_many(void)
{
    static struct aster_lease *leases[HANDLES];
    size_t rows = row_bytes();
    struct aster_serializer *serializer = open_memory();
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    size_t before = allocated_bytes();
    int64_t begin_ns = bench_now_ns();
    for (size_t i = 0; i < HANDLES; i++) {
        leases[i] = acquire(serializer, i, &options);
    }
    double seconds = (double)(bench_now_ns() - begin_ns) / 1e9;
    double bytes = ((double)(allocated_bytes() - before) - (double)rows) / HANDLES;
    printf("acquired in %.2f s; %.0f bytes per handle\n", seconds, bytes);
    hold_all(leases);
    for (size_t i = 0; i < HANDLES; i++) {
        aster_lease_destroy(leases[i]);
    }
    aster_serializer_destroy(serializer);
}

int main(void)
{
    measure_fence();
    measure_many();
    return failed ? 1 : 0;
}
