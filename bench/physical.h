/* What the machine itself costs, measured in the run whose figures stand beside it. */
#ifndef BENCH_PHYSICAL_H
#define BENCH_PHYSICAL_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
int64_t bench_now_ns(void);

/* Keeps the compiler from dropping the computation of `value`. */
void bench_keep(uint64_t value);

/* A small fast generator for inputs; *state must not be 0. */
uint64_t bench_random(uint64_t *state);

/* One read of CLOCK_BOOTTIME. */
double bench_clock_read_ns(void);

/* One uncontended lock and unlock of a pthread mutex. */
double bench_mutex_pair_ns(void);

/* Two reads at random places of a table of `bytes`, the second of which depends on the first: what a look-up costs at
 * least (a bucket, then a row). The table is freed again. Negative when there is no memory. */
double bench_two_dependent_reads_ns(size_t bytes);

/* How many times per second 4 KiB can be appended to a new file in `directory` and synced with fdatasync(), measured
 * for about `duration_ms`. The file is deleted. Negative, with errno set, on failure. */
double bench_append_sync_per_second(const char *directory, int duration_ms);

#endif
