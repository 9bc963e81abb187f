/* Act 3: the control run. The same workers and the same stop, but the lease is a row with an expiry time and the write
 * carries nothing. If the late write did no harm here, act 1 would prove nothing. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "cli/demo/acts.h"
#include "cli/demo/worker.h"

#define TTL_MS 800
#define STEP_A_MS 110
#define STEP_B_MS 30

static aster_status create_store(const char *database, struct aster_error *error)
{
    sqlite3 *db = NULL;
    aster_status status = aster_demo_store_connect(database, &db, error);
    if (status == ASTER_OK) {
        status = aster_demo_store_create(db, NULL, error);
    }
    sqlite3_close(db);
    return status;
}

static void judge(struct demo_expectations *list, const struct demo_facts *facts)
{
    const struct demo_message *b = facts->said[DEMO_WORKER_B];
    const struct demo_stored *before = &facts->before;
    const struct demo_stored *after = &facts->after;
    const char *worker_a = aster_demo_identity[DEMO_WORKER_A];
    const char *worker_b = aster_demo_identity[DEMO_WORKER_B];
    aster_demo_expect(
        list,
        facts->interrupted && facts->interrupted_ms > TTL_MS && strcmp(b[DEMO_SAYS_GRANTED].word, "TAKEOVER") == 0,
        "control.same-choreography", "control run: A was stopped past its plain lease and B took over, as in act 1",
        "stopped %d, %" PRId64 " ms, B's grant \"%s\"", facts->interrupted, facts->interrupted_ms,
        b[DEMO_SAYS_GRANTED].word);
    aster_demo_expect(list,
                      before->found && strcmp(before->published_by, worker_b) == 0 &&
                          before->total_cents == facts->order_total_cents,
                      "control.published", "control run: B's up-to-date invoice was in the store",
                      "in the store: \"%s\", %" PRId64 " cents, the order says %" PRId64, before->published_by,
                      before->total_cents, facts->order_total_cents);
    aster_demo_expect(list,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED] && after->found &&
                          strcmp(after->published_by, worker_a) == 0 && after->total_cents != facts->order_total_cents,
                      "control.corrupted",
                      "control run: without the fence A's late write went over it, and the store is wrong now",
                      "in the store: \"%s\", %" PRId64 " cents, the order says %" PRId64, after->published_by,
                      after->total_cents, facts->order_total_cents);
    aster_demo_expect(list, facts->exit_code[DEMO_WORKER_A] == 0 && facts->exit_code[DEMO_WORKER_B] == 0,
                      "control.nobody-noticed", "control run: both workers reported success", "A %d, B %d",
                      facts->exit_code[DEMO_WORKER_A], facts->exit_code[DEMO_WORKER_B]);
}

aster_status aster_demo_control_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error)
{
    aster_demo_act_init(act, "Act 3: the control run, a lease with an expiry time and no fence",
                        "The same workers and the same stop. The check before the write was right when it was made; "
                        "the write is not held to it.",
                        true);
    char database[DEMO_PATH_MAX];
    char pdf[DEMO_WORKERS][DEMO_PATH_MAX];
    struct demo_facts facts = {.exit_code = {-1, -1}};
    aster_status status = aster_demo_stage_path(stage, "control.db", database, error);
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "control-by-A.pdf", pdf[DEMO_WORKER_A], error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "control-by-B.pdf", pdf[DEMO_WORKER_B], error);
    }
    if (status == ASTER_OK) {
        status = create_store(database, error);
    }
    if (status == ASTER_OK) {
        const struct demo_script script = {.mode = DEMO_MODE_PLAIN,
                                           .incident = &aster_demo_stopping,
                                           .database = database,
                                           .pdf = {pdf[DEMO_WORKER_A], pdf[DEMO_WORKER_B]},
                                           .ttl_ms = TTL_MS,
                                           .step_ms = {STEP_A_MS, STEP_B_MS},
                                           .term = "lease",
                                           .show = stage->show,
                                           .show_user = stage->show_user};
        act->start_ns = aster_demo_now_ns();
        status = aster_demo_direct(&script, act, &facts, error);
    }
    judge(stage->expectations, &facts);
    aster_demo_facts_fini(&facts);
    return status;
}
