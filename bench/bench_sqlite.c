/* The SQLite serializer against the disk it writes to: what one acquire+release cycle costs in syncs, and what group
 * commit gains when many requesters share the disk. Usage: bench_sqlite [DIRECTORY] [SECONDS] */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/sqlite.h"

#define ROUNDS 15
#define REQUESTERS 64
#define CYCLE_BOUND 2.3 /* of two syncs */
#define GROUP_BOUND 5.0 /* times the rate of one requester */

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

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

/* Nanoseconds of one append of 4 KiB with its fdatasync. */
static double sync_once_ns(int fd)
{
    static char page[4096];
    int64_t start = now_ns();
    check(write(fd, page, sizeof page) == (ssize_t)sizeof page && fdatasync(fd) == 0, "cannot write and sync", NULL);
    return (double)(now_ns() - start);
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
              reply.decision.outcome == ASTER_GRANTED, "acquire", &error);
    operation.kind = ASTER_OP_RELEASE;
    operation.epoch = reply.decision.epoch;
    operation.ttl_ms = 0;
    check(aster_serializer_call(serializer, &operation, 0, &reply, &error) == ASTER_OK &&
              reply.decision.outcome == ASTER_GRANTED, "release", &error);
    aster_reply_fini(&reply);
}

/* Rounds of both in turn, so that a change in the disk's mood hits both. */
static bool measure_cycle(struct aster_serializer *serializer, int fd, int per_round, double *cycle_ns)
{
    double syncs[ROUNDS];
    double cycles[ROUNDS];
    double *one_sync = malloc(2 * (size_t)per_round * sizeof *one_sync);
    check(one_sync != NULL, "memory", NULL);
    cycle(serializer, "warm-up");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2 * per_round; i++) {
            one_sync[i] = sync_once_ns(fd);
        }
        syncs[round] = 0;
        for (int i = 0; i < 2 * per_round; i++) {
            syncs[round] += one_sync[i] / (2 * per_round);
        }
        int64_t start = now_ns();
        for (int i = 0; i < per_round; i++) {
            cycle(serializer, "bench");
        }
        cycles[round] = (double)(now_ns() - start) / per_round;
    }
    free(one_sync);
    double sync_ns = median(syncs, ROUNDS);
    *cycle_ns = median(cycles, ROUNDS);
    double ratio = *cycle_ns / (2 * sync_ns);
    bool pass = ratio <= CYCLE_BOUND;
    printf("one sync (4 KiB append + fdatasync)          %9.1f us\n", sync_ns / 1000);
    printf("one acquire+release cycle, one requester     %9.1f us\n", *cycle_ns / 1000);
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
    while (now_ns() < requester->until_ns) {
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
    int64_t begin_ns = now_ns();
    for (int i = 0; i < count; i++) {
        requesters[i] = (struct requester){.serializer = serializer, .start = &start,
                                           .until_ns = begin_ns + (int64_t)(seconds * 1e9)};
        snprintf(requesters[i].resource, sizeof requesters[i].resource, "bench/%d", i);
        check(pthread_create(&threads[i], NULL, request, &requesters[i]) == 0, "cannot start a thread", NULL);
    }
    int64_t cycles = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        cycles += requesters[i].cycles;
    }
    double elapsed_s = (double)(now_ns() - begin_ns) / 1e9;
    pthread_barrier_destroy(&start);
    return (double)cycles / elapsed_s;
}

static bool measure_group(struct aster_serializer *serializer, double seconds)
{
    double ones[5];
    double manys[5];
    for (int round = 0; round < 5; round++) {
        ones[round] = rate(serializer, 1, seconds / 10);
        manys[round] = rate(serializer, REQUESTERS, seconds / 10);
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
    char reference[600];
    snprintf(directory, sizeof directory, "%s/aster-bench-XXXXXX", parent);
    check(mkdtemp(directory) != NULL, "cannot make a directory", NULL);
    snprintf(path, sizeof path, "%s/store.db", directory);
    snprintf(reference, sizeof reference, "%s/reference", directory);
    int fd = open(reference, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    check(fd >= 0, "cannot make the reference file", NULL);
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    check(aster_sqlite_open(path, NULL, &serializer, &error) == ASTER_OK, "open", &error);
    double cycle_ns = 0;
    bool pass = measure_cycle(serializer, fd, seconds >= 4 ? 60 : 15, &cycle_ns);
    pass = measure_group(serializer, seconds) && pass;
    aster_serializer_destroy(serializer);
    close(fd);
    unlink(reference);
    unlink(path);
    rmdir(directory);
    return pass ? 0 : 1;
}
