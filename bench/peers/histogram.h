/* Latencies: 64 steps per power of two, so a quantile is right within 1.6 %. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS 4096

struct histogram {
    uint64_t count;
    int64_t max_ns;
    uint32_t steps[HISTOGRAM_STEPS];
};

void histogram_add(struct histogram *histogram, int64_t ns);
/* The quantile in microseconds; 0 when it is empty. */
double histogram_us(const struct histogram *histogram, double quantile);

#endif
