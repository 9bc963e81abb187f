/* The fenced write of the memory serializer, beside a mutex and beside memory itself. Exits 1 when a bound is broken.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aster/memory.h"
#include "physical.h"

#define RESOURCES 1000000
#define HOLDERS 1000
#define PICKS 65536 /* names drawn before the clock starts, so that drawing them is not measured */
#define BATCHES 16
#define HOT_WRITES 4000000
#define HOT_BOUND 8.0    /* x one uncontended mutex lock and unlock */
#define RANDOM_BOUND 3.0 /* x two dependent random reads */

struct pick {
    char resource[24];
    char holder[16];
};

static struct pick pick_of(size_t number)
{
    struct pick pick;
    snprintf(pick.resource, sizeof pick.resource, "resource/%011zu", number % RESOURCES);
    snprintf(pick.holder, sizeof pick.holder, "holder/%05zu", number % HOLDERS);
    return pick;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_memory: %s: %s\n", what, why);
    exit(2);
}

static void acquire_pick(struct aster_serializer *serializer, const struct pick *pick)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text(pick->resource);
    operation.caller = aster_text(pick->holder);
    operation.ttl_ms = 3600000;
    if (aster_serializer_call(serializer, &operation, 0, &reply, &error) != ASTER_OK || reply.decision.epoch != 1) {
        fail(pick->resource, error.message);
    }
    aster_reply_fini(&reply);
}

static aster_status count(void *tx, void *user)
{
    uint64_t *writes = user;
    (void)tx;
    *writes += 1;
    return ASTER_OK;
}

static struct aster_fence fence_of(const struct pick *pick)
{
    return (struct aster_fence){aster_text(pick->resource), 1, aster_text(pick->holder)};
}

static double hot_ns(struct aster_serializer *serializer)
{
    const struct pick pick = pick_of(4711);
    const struct aster_fence fence = fence_of(&pick);
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    uint64_t writes = 0;
    int64_t start_ns = bench_now_ns();
    for (int i = 0; i < HOT_WRITES; i++) {
        aster_mutate_fenced(serializer, &fence, fence.holder, count, &writes, &verdict, NULL);
    }
    int64_t took_ns = bench_now_ns() - start_ns;
    if (writes != HOT_WRITES) {
        fail("hot", "writes were refused");
    }
    return (double)took_ns / HOT_WRITES;
}

static double random_ns(struct aster_serializer *serializer)
{
    struct pick *picks = calloc(PICKS, sizeof *picks);
    struct aster_fence *fences = calloc(PICKS, sizeof *fences);
    if (picks == NULL || fences == NULL) {
        fail("random", "no memory");
    }
    uint64_t seed = 88172645463325252U;
    uint64_t writes = 0;
    int64_t took_ns = 0;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (size_t i = 0; i < PICKS; i++) {
            picks[i] = pick_of(bench_random(&seed) % RESOURCES);
            fences[i] = fence_of(&picks[i]);
        }
        int64_t start_ns = bench_now_ns();
        for (size_t i = 0; i < PICKS; i++) {
            aster_mutate_fenced(serializer, &fences[i], fences[i].holder, count, &writes, &verdict, NULL);
        }
        took_ns += bench_now_ns() - start_ns;
    }
    free(picks);
    free(fences);
    if (writes != (uint64_t)PICKS * BATCHES) {
        fail("random", "writes were refused");
    }
    return (double)took_ns / ((double)PICKS * BATCHES);
}

static pthread_barrier_t finished;

static void *idle(void *user)
{
    pthread_barrier_wait(&finished);
    return user;
}

/* The C library leaves the atomic instructions out of its locks while a process has one thread; whoever shares a
 * serializer has more, and both sides of the comparison shall cost what they cost there. */
static pthread_t become_multithreaded(void)
{
    pthread_t thread;
    pthread_barrier_init(&finished, NULL, 2);
    if (pthread_create(&thread, NULL, idle, NULL) != 0) {
        fail("thread", "cannot be started");
    }
    return thread;
}

static int report(const char *what, double ns, const char *reference, double reference_ns, double bound)
{
    double ratio = ns / reference_ns;
    int broken = ratio > bound;
    printf("%-34s %7.1f ns = %5.2f x %s (%.1f ns), bound %.0f: %s\n", what, ns, ratio, reference, reference_ns, bound,
           broken ? "FAIL" : "PASS");
    return broken;
}

int main(void)
{
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    options.history_max = 0;
    pthread_t thread = become_multithreaded();
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (aster_memory_open(&options, &serializer, &error) != ASTER_OK) {
        fail("open", error.message);
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        const struct pick pick = pick_of(i);
        acquire_pick(serializer, &pick);
    }
    size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    printf("%d resources held by %d holders in %zu MiB\n", RESOURCES, HOLDERS, bytes >> 20);
    int broken = report("mutate_fenced, hot resource", hot_ns(serializer), "mutex lock+unlock", bench_mutex_pair_ns(),
                        HOT_BOUND);
    broken += report("mutate_fenced, random of 1,000,000", random_ns(serializer), "two dependent random reads",
                     bench_two_dependent_reads_ns(bytes), RANDOM_BOUND);
    aster_serializer_destroy(serializer);
    pthread_barrier_wait(&finished);
    pthread_join(thread, NULL);
    return broken != 0;
}
