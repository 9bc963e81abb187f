#include "histogram.h"

void histogram_add(struct histogram *histogram, int64_t ns)
{
    uint64_t value = ns > 0 ? (uint64_t)ns : 0;
    unsigned shift = value < 128 ? 0 : (unsigned)(63 - __builtin_clzll(value) - 6);
    uint64_t step = (uint64_t)shift * 64 + (value >> shift);
    histogram->steps[step < HISTOGRAM_STEPS ? step : HISTOGRAM_STEPS - 1]++;
    histogram->count++;
    histogram->max_ns = ns > histogram->max_ns ? ns : histogram->max_ns;
}

static double middle_ns(unsigned step)
{
    if (step < 128) {
        return step;
    }
    unsigned shift = step / 64 - 1;
    return (double)(((uint64_t)(step - shift * 64) << shift) + ((UINT64_C(1) << shift) >> 1));
}

double histogram_us(const struct histogram *histogram, double quantile)
{
    uint64_t wanted = (uint64_t)(quantile * (double)histogram->count);
    uint64_t seen = 0;
    for (unsigned step = 0; step < HISTOGRAM_STEPS; step++) {
        seen += histogram->steps[step];
        if (seen > wanted) {
            return middle_ns(step) / 1e3;
        }
    }
    return (double)histogram->max_ns / 1e3;
}
