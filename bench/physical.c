#include "physical.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)

int64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

void bench_keep(uint64_t value)
{
    __asm__ volatile("" : : "r"(value));
}

uint64_t bench_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

double bench_clock_read_ns(void)
{
    enum { READS = 1000000 };
    struct timespec now;
    int64_t sum = 0;
    int64_t begin = bench_now_ns();
    for (int i = 0; i < READS; i++) {
        clock_gettime(CLOCK_BOOTTIME, &now);
        sum += now.tv_nsec;
    }
    int64_t end = bench_now_ns();
    bench_keep((uint64_t)sum);
    return (double)(end - begin) / READS;
}

double bench_mutex_pair_ns(void)
{
    enum { PAIRS = 2000000 };
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int64_t begin = bench_now_ns();
    for (int i = 0; i < PAIRS; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    int64_t end = bench_now_ns();
    pthread_mutex_destroy(&mutex);
    return (double)(end - begin) / PAIRS;
}

double bench_two_dependent_reads_ns(size_t bytes)
{
    enum { LOOKUPS = 1000000 };
    size_t count = bytes / sizeof(uint64_t) > 2 ? bytes / sizeof(uint64_t) : 2;
    uint64_t *table = malloc(count * sizeof *table);
    if (table == NULL) {
        return -1;
    }
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < count; i++) {
        table[i] = bench_random(&state) % count;
    }
    /* Where the first read goes depends on the previous look-up too, or the processor would overlap look-ups. */
    uint64_t at = 0;
    int64_t begin = bench_now_ns();
    for (int i = 0; i < LOOKUPS; i++) {
        at = table[table[(bench_random(&state) + at) % count]];
    }
    int64_t end = bench_now_ns();
    bench_keep(at);
    free(table);
    return (double)(end - begin) / LOOKUPS;
}

double bench_append_sync_per_second(const char *directory, int duration_ms)
{
    static const char block[4096] = "aster";
    char path[PATH_MAX];
    double result = -1;
    snprintf(path, sizeof path, "%s/aster-bench-XXXXXX", directory);
    int fd = mkstemp(path);
    if (fd < 0) {
        return result;
    }
    int64_t begin = bench_now_ns();
    int64_t end = begin;
    int64_t syncs = 0;
    while (end - begin < (int64_t)duration_ms * 1000000) {
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block || fdatasync(fd) != 0) {
            goto done;
        }
        syncs++;
        end = bench_now_ns();
    }
    result = (double)syncs * 1e9 / (double)(end - begin);
done:
    unlink(path);
    close(fd);
    return result;
}
