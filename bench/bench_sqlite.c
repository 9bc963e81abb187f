/* The SQLite serializer against the disk it writes to: what one acquire+release cycle costs in syncs, and what group
 * commit gains when many requesters share the disk. Every grant and every release is synced (strace -c counts one
 * fdatasync each); a cycle can still cost less than two of the reference's, because the log is overwritten in place
 * once it has been checkpointed, and an append makes the file system write its metadata too.
 * Usage: bench_sqlite [DIRECTORY] [SECONDS] */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "physical.h"

#define ROUNDS 15
#define REQUESTERS 64
#define CYCLE_BOUND 2.3 /* of two syncs */
#define GROUP_BOUND 5.0 /* times the rate of one requester */

static void check(bool good, const char *what, const struct aster_error *error)
{
    if (!good) {
        fprintf(stderr, "bench_sqlite: %s: %s\n", what, error != NULL ? error->message : "failed");
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void cycle(struct aster_serializer *serializer, const char *resource)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text(resource);
    operation.caller = aster_text("bench");
    operation.ttl_ms = 30000;
    check(aster_serializer_call(serializer, &operation, 0, &reply, &error) == ASTER_OK &&
              reply.decision.outcome == ASTER_GRANTED,
          "acquire", &error);
    operation.kind = ASTER_OP_RELEASE;
    operation.epoch = reply.decision.epoch;
    operation.ttl_ms = 0;
    check(aster_serializer_call(serializer, &operation, 0, &reply, &error) == ASTER_OK &&
              reply.decision.outcome == ASTER_GRANTED,
          "release", &error);
    aster_reply_fini(&reply);
}

/* Rounds of both in turn, so that a change in the disk's mood hits both. */
static bool measure_cycle(struct aster_serializer *serializer, const char *directory, int round_ms)
{
    double syncs[ROUNDS];
    double cycles[ROUNDS];
    cycle(serializer, "bench");
    for (int round = 0; round < ROUNDS; round++) {
        double per_second = bench_append_sync_per_second(directory, round_ms);
        check(per_second > 0, "cannot write and sync", NULL);
        syncs[round] = 1e9 / per_second;
        int64_t start = bench_now_ns();
        int64_t until = start + (int64_t)round_ms * 1000000;
        int count = 0;
        for (; bench_now_ns() < until; count++) {
            cycle(serializer, "bench");
        }
        cycles[round] = (double)(bench_now_ns() - start) / count;
    }
    double sync_ns = median(syncs, ROUNDS);
    double cycle_ns = median(cycles, ROUNDS);
    double ratio = cycle_ns / (2 * sync_ns);
    bool pass = ratio <= CYCLE_BOUND;
    printf("one sync (4 KiB append + fdatasync)          %9.1f us\n", sync_ns / 1000);
    printf("one acquire+release cycle, one requester     %9.1f us\n", cycle_ns / 1000);
    printf("cycle / two syncs                            %9.2f    bound %.1f  %s\n", ratio, CYCLE_BOUND,
           pass ? "PASS" : "FAIL");
    return pass;
}

struct requester {
    struct aster_serializer *serializer;
    pthread_barrier_t *start;
    char resource[32];
    int64_t until_ns;
    int64_t cycles;
};

static void *request(void *user)
{
    struct requester *requester = user;
    pthread_barrier_wait(requester->start);
    while (bench_now_ns() < requester->until_ns) {
        cycle(requester->serializer, requester->resource);
        requester->cycles++;
    }
    return NULL;
}

/* Cycles per second of `count` requesters with a resource each. */
static double rate(struct aster_serializer *serializer, int count, double seconds)
{
    static struct requester requesters[REQUESTERS];
    pthread_t threads[REQUESTERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)count);
    int64_t begin_ns = bench_now_ns();
    for (int i = 0; i < count; i++) {
        requesters[i] = (struct requester){
            .serializer = serializer, .start = &start, .until_ns = begin_ns + (int64_t)(seconds * 1e9)};
        snprintf(requesters[i].resource, sizeof requesters[i].resource, "bench/%d", i);
        check(pthread_create(&threads[i], NULL, request, &requesters[i]) == 0, "cannot start a thread", NULL);
    }
    int64_t cycles = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        cycles += requesters[i].cycles;
    }
    double elapsed_s = (double)(bench_now_ns() - begin_ns) / 1e9;
    pthread_barrier_destroy(&start);
    return (double)cycles / elapsed_s;
}

static bool measure_group(struct aster_serializer *serializer, double seconds)
{
    double ones[5];
    double manys[5];
    for (int round = 0; round < 5; round++) {
        ones[round] = rate(serializer, 1, seconds / 20);
        manys[round] = rate(serializer, REQUESTERS, seconds / 20);
    }
    double one = median(ones, 5);
    double many = median(manys, 5);
    bool pass = many >= GROUP_BOUND * one;
    printf("cycles per second, one requester             %9.0f\n", one);
    printf("cycles per second, %d requesters             %9.0f\n", REQUESTERS, many);
    printf("gain by group commit                         %9.2f    bound %.1f  %s\n", many / one, GROUP_BOUND,
           pass ? "PASS" : "FAIL");
    return pass;
}

int main(int argc, char **argv)
{
    const char *parent = argc > 1 ? argv[1] : ".";
    double seconds = argc > 2 ? atof(argv[2]) : 4;
    char directory[512];
    char path[600];
    snprintf(directory, sizeof directory, "%s/aster-bench-XXXXXX", parent);
    check(mkdtemp(directory) != NULL, "cannot make a directory", NULL);
    snprintf(path, sizeof path, "%s/store.db", directory);
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    check(aster_sqlite_open(path, NULL, &serializer, &error) == ASTER_OK, "open", &error);
    bool pass = measure_cycle(serializer, directory, (int)(seconds * 1000 / (4 * ROUNDS)));
    pass = measure_group(serializer, seconds) && pass;
    aster_serializer_destroy(serializer);
    unlink(path);
    rmdir(directory);
    return pass ? 0 : 1;
}
