/* The choreography, the same for every kind of lease: worker A renders and is kept from acting between its check and
 * its write (stopped, or cut off), worker B takes over and publishes, A's write arrives. The director reports what it
 * saw; whether that is what should have happened is judged elsewhere (fenced_run.c, control_run.c,
 * grantor/takeover_run.c).
 */
#ifndef DEMO_DIRECTOR_H
#define DEMO_DIRECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"
#include "cli/demo/incident.h"
#include "cli/demo/invoice_store.h"
#include "cli/demo/message.h"
#include "cli/demo/timeline.h"

enum demo_worker { DEMO_WORKER_A, DEMO_WORKER_B, DEMO_WORKERS };

/* Their identities, "worker-A" and "worker-B". */
extern const char *const aster_demo_identity[DEMO_WORKERS];

struct demo_script {
    const char *mode; /* DEMO_MODE_... */
    const struct demo_incident *incident;
    const char *holder[DEMO_WORKERS];  /* how the serializer names each worker; NULL = by its identity */
    const char *grantor[DEMO_WORKERS]; /* where each worker finds the grantor; NULL = there is none */
    const char *node[DEMO_WORKERS];    /* the directory of its key there */
    const char *database;              /* absolute; the tables exist */
    const char *pdf[DEMO_WORKERS];     /* where each worker keeps what it rendered */
    int64_t ttl_ms;
    int64_t step_ms[DEMO_WORKERS];
    const char *term; /* "epoch", or what the plain lease calls it */
    /* Called often while the act runs, to show what is new. */
    void (*show)(struct demo_act *act, void *user);
    void *show_user;
};

/* What happened. Facts that were not reached stay zero. Finish with aster_demo_facts_fini(). */
struct demo_facts {
    bool heard[DEMO_WORKERS][DEMO_SAYS_KINDS];
    struct demo_message said[DEMO_WORKERS][DEMO_SAYS_KINDS]; /* the last of each kind */
    int exit_code[DEMO_WORKERS];                             /* -1 = did not end by itself */
    bool interrupted;                                        /* the incident has begun */
    int64_t interrupted_ms;                                  /* from then until its end */
    struct demo_stored before;                               /* in the store when B had published and A was still out */
    struct demo_stored after;                                /* in the store when A had tried */
    int64_t order_total_cents;                               /* what an up-to-date invoice must say */
};

/* Run it. ASTER_OK: every step was reached. Otherwise which one was not, and why; the facts so far are filled in.
 * ASTER_ERR_CANCELLED after SIGINT, SIGTERM or SIGHUP. Leaves no process behind in any case. */
aster_status aster_demo_direct(const struct demo_script *script, struct demo_act *act, struct demo_facts *facts,
                               struct aster_error *error);
void aster_demo_facts_fini(struct demo_facts *facts);

#endif
