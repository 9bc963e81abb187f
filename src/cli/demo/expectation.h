/* What the demo promised to show, and whether it really happened. */
#ifndef DEMO_EXPECTATION_H
#define DEMO_EXPECTATION_H

#include <stdbool.h>
#include <stddef.h>

#define DEMO_EXPECTATIONS_MAX 48
#define DEMO_OBSERVED_MAX 200

struct demo_expectation {
    const char *name; /* "act1.stale-write-rejected" */
    const char *text; /* what had to happen */
    bool met;
    char observed[DEMO_OBSERVED_MAX]; /* what did */
};

struct demo_expectations {
    struct demo_expectation items[DEMO_EXPECTATIONS_MAX];
    size_t count;
};

/* Record one. `name` and `text` are borrowed; the rest describes the observation that decided it. */
void aster_demo_expect(struct demo_expectations *expectations, bool met, const char *name, const char *text,
                       const char *observed_format, ...) __attribute__((format(printf, 5, 6)));

size_t aster_demo_expectations_failed(const struct demo_expectations *expectations);

#endif
