#include "cli/demo/incident.h"

/* Stop A, but not while it holds SQLite's file lock in the middle of a renewal: that would stall every other writer of
 * the file until A runs again, which is a matter of SQLite and not what this shows. */
static aster_status begin(void *user, struct demo_process *first, sqlite3 *db, bool *begun, struct aster_error *error)
{
    (void)user;
    aster_status status = aster_demo_process_stop(first, error);
    if (status != ASTER_OK) {
        return status;
    }
    *begun = aster_demo_store_is_unlocked(db);
    return *begun ? ASTER_OK : aster_demo_process_continue(first, error);
}

static aster_status end(void *user, struct demo_process *first, struct aster_error *error)
{
    (void)user;
    return aster_demo_process_continue(first, error);
}

static aster_status read_store(void *user, sqlite3 *db, struct demo_stored *stored, struct aster_error *error)
{
    (void)user;
    return aster_demo_store_read(db, stored, error);
}

const struct demo_incident aster_demo_stopping = {.begin = begin,
                                                  .end = end,
                                                  .read = read_store,
                                                  .begins = "SIGSTOP, between its check and its write",
                                                  .ends = "SIGCONT: its write is still on the way"};
