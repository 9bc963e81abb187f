/* What keeps worker A from acting between its check and its write, and where the workers meet. */
#ifndef DEMO_INCIDENT_H
#define DEMO_INCIDENT_H

#include "cli/demo/invoice_store.h"
#include "cli/demo/process.h"

struct demo_incident {
    /* Begin; *begun false: not at this moment, try again soon. `db` is the director's connection to the database. */
    aster_status (*begin)(void *user, struct demo_process *first, sqlite3 *db, bool *begun, struct aster_error *error);
    aster_status (*end)(void *user, struct demo_process *first, struct aster_error *error);
    /* What is published now. */
    aster_status (*read)(void *user, sqlite3 *db, struct demo_stored *stored, struct aster_error *error);
    void *user;
    bool still_runs;    /* A goes on meanwhile: it sends its write into the incident, and its handle ends by itself */
    const char *begins; /* for the timeline */
    const char *ends;
};

/* SIGSTOP and SIGCONT; the invoice is in the database. */
extern const struct demo_incident aster_demo_stopping;

#endif
