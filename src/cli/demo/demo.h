/* `aster demo`: plays a story of a few acts, shows them, and judges them. */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include <stdbool.h>
#include <stdio.h>

struct demo_options {
    const char *directory; /* NULL = a fresh one */
    const char *svg;       /* NULL = demo-timeline.svg in the directory */
    bool json;
    bool grantor;   /* the story over QUIC */
    bool sabotaged; /* for tests: it must fail */
};

/* Run the demo, print to `out`. Returns 0 only if every expectation was met, 1 otherwise, 70 or 74 when there
 * is no memory or no place for its files, an exit status of exit.h when the grantor cannot be started; 128 + signal
 * when it was interrupted, with its processes ended and a fresh directory removed. */
int aster_demo_run(const struct demo_options *options, FILE *out);

#endif
