/* How a worker owns the invoice: the seam between a fenced lease in a file, a plain lease with an expiry time, and a
 * lease of a grantor. The worker's script is the same for all; only these answers differ. One thread. */
#ifndef DEMO_OWNERSHIP_H
#define DEMO_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/fence.h"
#include "cli/demo/invoice_store.h"

#define DEMO_NAME_MAX 80 /* a worker's name, or a node id */

/* Where a worker finds things, and who it is. All borrowed. */
struct demo_place {
    const char *database; /* of the order, and of the invoice unless a grantor keeps it */
    const char *grantor;  /* "IDENTITY@HOST:PORT", or NULL */
    const char *node;     /* the directory of the worker's key at the grantor, or NULL */
    const char *worker;
    int64_t ttl_ms;
};

struct demo_grant {
    bool granted;
    bool takeover;
    int64_t epoch;
    char reason[32];           /* of a denial */
    char other[DEMO_NAME_MAX]; /* denied: who holds it; granted: who held it before, or empty */
};

struct demo_renewals {
    int64_t count;
    int64_t last_ns; /* when the last one was sent */
};

struct demo_aftermath {
    bool supplies_fence;    /* would the worker still be allowed to write? */
    char status[32];        /* of its lease handle */
    bool raw_write_refused; /* plain SQL on the worker's own connection, under the fence that it kept */
    char raw_message[240];
};

struct demo_ownership_ops {
    aster_status (*open)(const struct demo_place *place, void **self, struct aster_error *error);
    /* Try once (wait_ms 0), or wait while another holds it. */
    aster_status (*acquire)(void *self, int64_t wait_ms, struct demo_grant *grant, struct aster_error *error);
    /* Renew if that is not done in the background, and say how far it got. Called often. */
    aster_status (*renewals)(void *self, struct demo_renewals *renewals, struct aster_error *error);
    /* May I write? The answer is kept, and publish() goes by it, however much later it runs. */
    aster_status (*check)(void *self, bool *allowed, int64_t *epoch, struct aster_error *error);
    /* The write itself. verdict->reason NONE: it is in the store. */
    aster_status (*publish)(void *self, const struct demo_publication *publication, struct aster_verdict *verdict,
                            struct aster_error *error);
    /* What the worker is left with after a rejected write. NULL when nothing ever rejects. */
    aster_status (*aftermath)(void *self, const struct demo_publication *publication, struct demo_aftermath *aftermath,
                              struct aster_error *error);
    aster_status (*release)(void *self, struct aster_error *error);
    void (*close)(void *self);
};

extern const struct demo_ownership_ops aster_demo_fenced_ownership;
extern const struct demo_ownership_ops aster_demo_unchecked_ownership; /* sabotage: fenced, but publishes unchecked */
extern const struct demo_ownership_ops aster_demo_plain_ownership;
extern const struct demo_ownership_ops
    aster_demo_grantor_ownership; /* without grantors in the build: refuses to open */

#endif
