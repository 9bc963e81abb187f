/* The engine alone on one core: what a decision costs as the table grows, and what a held lease weighs. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/table.h"
#include "physical.h"

#define HOLDERS 1000U
#define TTL_MS 30000
#define NAME_SIZE 20U /* "resource/00000000042" */
#define OPERATIONS 400000U

struct name {
    char text[NAME_SIZE + 1];
};

static struct name resource_name(size_t number)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "resource/%011zu", number % 100000000000U);
    return name;
}

static struct name holder_name(size_t number)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "holder/%09zu", number % HOLDERS);
    return name;
}

static struct aster_table *new_table(void)
{
    struct aster_table_options options = {{1, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_table_create(&options, &table, &error) != ASTER_OK) {
        fprintf(stderr, "bench_engine: %s\n", error.message);
        exit(1);
    }
    return table;
}

/* Decide, and insist on a grant: a benchmark of refusals would be a lie. */
static int64_t apply(struct aster_table *table, enum aster_operation_kind kind, const struct name *resource,
                     const struct name *holder, int64_t epoch, int64_t now_ns)
{
    static uint64_t request = 0;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_table_result result;
    struct aster_error error = ASTER_ERROR_INIT;
    operation.kind = kind;
    operation.resource = (struct aster_bytes){resource->text, strlen(resource->text)};
    operation.caller = (struct aster_bytes){holder->text, strlen(holder->text)};
    operation.ttl_ms = TTL_MS;
    operation.epoch = epoch;
    request++;
    memcpy(operation.request_id, &request, sizeof request);
    if (aster_table_apply(table, &operation, now_ns, &result, &error) != ASTER_OK ||
        result.effect.decision.outcome != ASTER_GRANTED) {
        fprintf(stderr, "bench_engine: %s was not granted: %s\n", aster_operation_name(kind), error.message);
        exit(1);
    }
    return result.effect.decision.epoch;
}

static struct aster_table *filled_table(size_t resources)
{
    struct aster_table *table = new_table();
    for (size_t i = 0; i < resources; i++) {
        struct name resource = resource_name(i);
        struct name holder = holder_name(i);
        apply(table, ASTER_OP_ACQUIRE, &resource, &holder, 0, 0);
    }
    return table;
}

/* Names are made before the clock starts: the table is measured, not snprintf. */
struct names {
    struct name *resources;
    struct name *holders;
};

static struct names random_names(size_t resources)
{
    struct names names = {malloc(OPERATIONS * sizeof(struct name)), malloc(OPERATIONS * sizeof(struct name))};
    uint64_t state = 42;
    if (names.resources == NULL || names.holders == NULL) {
        fprintf(stderr, "bench_engine: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < OPERATIONS; i++) {
        size_t number = bench_random(&state) % resources;
        names.resources[i] = resource_name(number);
        names.holders[i] = holder_name(number);
    }
    return names;
}

static double fence_ns(const struct aster_table *table, const struct names *names)
{
    uint64_t rejected = 0;
    int64_t begin = bench_now_ns();
    for (size_t i = 0; i < OPERATIONS; i++) {
        struct aster_bytes holder = {names->holders[i].text, 16};
        struct aster_fence fence = {{names->resources[i].text, NAME_SIZE}, 1, holder};
        rejected += aster_table_fence(table, &fence, holder).reason != ASTER_REASON_NONE;
    }
    int64_t end = bench_now_ns();
    if (rejected != 0) {
        fprintf(stderr, "bench_engine: %" PRIu64 " fences of holders were rejected\n", rejected);
        exit(1);
    }
    return (double)(end - begin) / OPERATIONS;
}

static double renew_ns(struct aster_table *table, const struct names *names)
{
    int64_t begin = bench_now_ns();
    for (size_t i = 0; i < OPERATIONS; i++) {
        apply(table, ASTER_OP_RENEW, &names->resources[i], &names->holders[i], 1, (int64_t)i);
    }
    return (double)(bench_now_ns() - begin) / OPERATIONS;
}

static void cost_by_size(void)
{
    static const size_t sizes[] = {1, 1000, 100000, 1000000};
    printf("%10s %12s %12s %26s\n", "resources", "fence", "renew", "two dependent reads");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct aster_table *table = filled_table(sizes[i]);
        struct names names = random_names(sizes[i]);
        double fence = fence_ns(table, &names);
        double renew = renew_ns(table, &names);
        double reads = bench_two_dependent_reads_ns(aster_table_usage_get(table).bytes);
        printf("%10zu %9.1f ns %9.1f ns %23.1f ns\n", sizes[i], fence, renew, reads);
        free(names.resources);
        free(names.holders);
        aster_table_destroy(table);
    }
}

static void cycles_per_second(void)
{
    enum { CYCLES = 1000000, RESOURCES = 1000 };
    static struct name resources[RESOURCES];
    struct aster_table *table = new_table();
    struct name holder = holder_name(7);
    for (size_t i = 0; i < RESOURCES; i++) {
        resources[i] = resource_name(i);
    }
    int64_t begin = bench_now_ns();
    for (size_t i = 0; i < CYCLES; i++) {
        const struct name *resource = &resources[i % RESOURCES];
        int64_t epoch = apply(table, ASTER_OP_ACQUIRE, resource, &holder, 0, (int64_t)i);
        apply(table, ASTER_OP_RELEASE, resource, &holder, epoch, (int64_t)i);
    }
    double seconds = (double)(bench_now_ns() - begin) / 1e9;
    printf("acquire + release: %.0f cycles/s on one core over %d resources\n", CYCLES / seconds, RESOURCES);
    aster_table_destroy(table);
}

static size_t resident_bytes(void)
{
    size_t size = 0;
    size_t resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &size, &resident) != 2) {
        resident = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void bytes_per_lease(void)
{
    const size_t leases = 1000000;
    struct mallinfo2 before = mallinfo2();
    size_t resident_before = resident_bytes();
    struct aster_table *table = filled_table(leases);
    struct mallinfo2 after = mallinfo2();
    size_t resident = resident_bytes() - resident_before;
    size_t allocated = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    printf("held leases: %zu of %u holders, names of %u bytes\n", leases, HOLDERS, NAME_SIZE);
    printf("  beyond the name: %.1f bytes allocated (with the allocator's overhead), %.1f bytes resident\n",
           (double)allocated / (double)leases - NAME_SIZE, (double)resident / (double)leases - NAME_SIZE);
    aster_table_destroy(table);
}

int main(void)
{
    printf("clock read %.1f ns, mutex pair %.1f ns\n", bench_clock_read_ns(), bench_mutex_pair_ns());
    bytes_per_lease(); /* first: on a heap that nothing has fragmented */
    cycles_per_second();
    cost_by_size();
    return 0;
}
