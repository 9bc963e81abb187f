/* Act 1: the delayed write meets the fence. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aster/sqlite.h"
#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/acts.h"
#include "cli/demo/worker.h"

#define TTL_MS 2000
#define STEP_A_MS 310 /* nine steps: longer than one ttl, so that the lease must be renewed */
#define STEP_B_MS 100

/* What the serializer itself has written down, read back after the run. */
struct audit {
    bool takeover;  /* worker B replaced worker A */
    bool rejection; /* a write of worker A under epoch 1 was rejected at epoch 2 */
};

static bool names(struct aster_bytes name, const char *text)
{
    return aster_bytes_equal(name, aster_text(text)) != 0;
}

static bool note_event(const struct aster_event *event, void *user)
{
    struct audit *audit = user;
    if (event->kind == ASTER_EVENT_TAKEOVER && event->epoch == 2 &&
        names(event->actor, aster_demo_identity[DEMO_WORKER_B]) &&
        names(event->previous, aster_demo_identity[DEMO_WORKER_A])) {
        audit->takeover = true;
    }
    if (event->kind == ASTER_EVENT_FENCE_REJECTED && event->reason == ASTER_REASON_STALE_EPOCH &&
        event->carried_epoch == 1 && event->epoch == 2 && names(event->actor, aster_demo_identity[DEMO_WORKER_A])) {
        audit->rejection = true;
    }
    return true;
}

static aster_status read_audit(const char *database, struct audit *audit, struct aster_error *error)
{
    struct aster_serializer *serializer = NULL;
    aster_status status = aster_sqlite_open(database, NULL, &serializer, error);
    if (status == ASTER_OK) {
        struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
        query.resource = aster_text(DEMO_RESOURCE);
        status = aster_history(serializer, &query, note_event, audit, error);
    }
    aster_serializer_destroy(serializer);
    return status;
}

static aster_status create_store(const char *database, bool protect, struct aster_error *error)
{
    char *triggers = NULL;
    sqlite3 *db = NULL;
    struct aster_serializer *serializer = NULL;
    aster_status status = aster_sqlite_open(database, NULL, &serializer, error);
    if (status == ASTER_OK && protect) {
        status = aster_sqlite_protect_sql("invoice", aster_text(DEMO_RESOURCE), NULL, &triggers, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_store_connect(database, &db, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_store_create(db, triggers, error);
    }
    sqlite3_close(db);
    sqlite3_free(triggers);
    aster_serializer_destroy(serializer);
    return status;
}

static void judge_lease(struct demo_expectations *list, const struct demo_facts *facts, const struct audit *audit)
{
    const struct demo_message *a = facts->said[DEMO_WORKER_A];
    const struct demo_message *b = facts->said[DEMO_WORKER_B];
    const struct demo_stored *before = &facts->before;
    aster_demo_expect(list, a[DEMO_SAYS_GRANTED].epoch == 1, "fenced.first-grant", "worker A was granted epoch 1",
                      "granted epoch %" PRId64, a[DEMO_SAYS_GRANTED].epoch);
    aster_demo_expect(list, a[DEMO_SAYS_RENEWED].count >= 1 && a[DEMO_SAYS_RENDERED].count > TTL_MS, "fenced.renewed",
                      "worker A rendered for longer than one ttl and kept its lease by renewing it",
                      "%" PRId64 " renewals, %" PRId64 " ms of rendering, ttl %d ms", a[DEMO_SAYS_RENEWED].count,
                      a[DEMO_SAYS_RENDERED].count, TTL_MS);
    aster_demo_expect(list,
                      strcmp(b[DEMO_SAYS_DENIED].word, "HELD_BY_OTHER") == 0 &&
                          strcmp(b[DEMO_SAYS_DENIED].text, aster_demo_identity[DEMO_WORKER_A]) == 0,
                      "fenced.no-theft", "worker B was denied while A's lease was alive", "denied: \"%s\" by \"%s\"",
                      b[DEMO_SAYS_DENIED].word, b[DEMO_SAYS_DENIED].text);
    aster_demo_expect(list, facts->interrupted && facts->interrupted_ms > TTL_MS && a[DEMO_SAYS_ARMED].epoch == 1,
                      "fenced.paused",
                      "worker A was stopped for longer than its lease, after its check had found epoch 1 valid",
                      "stopped %d, %" PRId64 " ms, checked epoch %" PRId64, facts->interrupted, facts->interrupted_ms,
                      a[DEMO_SAYS_ARMED].epoch);
    aster_demo_expect(list, b[DEMO_SAYS_GRANTED].epoch == 2 && audit->takeover, "fenced.takeover",
                      "worker B took over with epoch 2, and the audit says from whom",
                      "granted epoch %" PRId64 ", takeover in the audit: %d", b[DEMO_SAYS_GRANTED].epoch,
                      audit->takeover);
    aster_demo_expect(list,
                      before->found && strcmp(before->published_by, aster_demo_identity[DEMO_WORKER_B]) == 0 &&
                          before->epoch == 2,
                      "fenced.published", "worker B published under epoch 2 while A was stopped",
                      "in the store: \"%s\", epoch %" PRId64, before->published_by, before->epoch);
}

static void judge_rejection(struct demo_expectations *list, const struct demo_facts *facts, const struct audit *audit)
{
    const struct demo_message *a = facts->said[DEMO_WORKER_A];
    const struct demo_message *rejected = &a[DEMO_SAYS_REJECTED];
    aster_demo_expect(list,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_REJECTED] && strcmp(rejected->word, "STALE_EPOCH") == 0 &&
                          rejected->epoch == 1 && rejected->count == 2 &&
                          !facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED],
                      "fenced.late-write-rejected", "worker A's delayed write was rejected: STALE_EPOCH, 1 against 2",
                      "%s \"%s\" carried %" PRId64 " current %" PRId64,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED] ? "the write was ACCEPTED;" : "decision",
                      rejected->word, rejected->epoch, rejected->count);
    aster_demo_expect(list, audit->rejection, "fenced.audited", "the store's own audit has that rejection", "found: %d",
                      audit->rejection);
    const struct demo_message *guarded = &a[DEMO_SAYS_GUARDED];
    aster_demo_expect(list, strcmp(guarded->word, "refused") == 0 && strstr(guarded->text, "STALE_EPOCH") != NULL,
                      "fenced.triggers", "plain SQL by worker A under its old fence was refused by the triggers",
                      "\"%s\": %.120s", guarded->word, guarded->text);
    const struct demo_message *ended = &a[DEMO_SAYS_ENDED];
    aster_demo_expect(list,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_ENDED] && ended->count == 0 &&
                          (strcmp(ended->word, "LOST") == 0 || strcmp(ended->word, "FENCED") == 0),
                      "fenced.handle-ended", "worker A's handle knows that it is over and supplies no fence",
                      "status \"%s\", supplies a fence: %" PRId64, ended->word, ended->count);
}

static void judge_store(struct demo_expectations *list, const struct demo_facts *facts)
{
    const struct demo_stored *before = &facts->before;
    const struct demo_stored *after = &facts->after;
    aster_demo_expect(list, aster_demo_stored_equal(before, after), "fenced.unchanged",
                      "after A's attempts the store holds B's invoice, byte for byte",
                      "%zu bytes by \"%s\" before, %zu bytes by \"%s\" after", before->pdf_size, before->published_by,
                      after->pdf_size, after->published_by);
    aster_demo_expect(list, aster_demo_stored_is_pdf(after), "fenced.is-a-pdf", "what the store holds is a PDF",
                      "%zu bytes", after->pdf_size);
    aster_demo_expect(list, after->found && after->total_cents == facts->order_total_cents, "fenced.up-to-date",
                      "its total is that of the corrected order", "%" PRId64 " cents, the order says %" PRId64,
                      after->total_cents, facts->order_total_cents);
    aster_demo_expect(list,
                      facts->exit_code[DEMO_WORKER_A] == DEMO_WORKER_REFUSED &&
                          facts->exit_code[DEMO_WORKER_B] == DEMO_WORKER_PUBLISHED,
                      "fenced.exit-codes", "the processes ended so: A with 77 (refused), B with 0", "A %d, B %d",
                      facts->exit_code[DEMO_WORKER_A], facts->exit_code[DEMO_WORKER_B]);
}

aster_status aster_demo_fenced_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error)
{
    aster_demo_act_init(act, "Act 1: the lease has a fence, and the write carries it",
                        "The store checks the fence in the same transaction as the write. The late write changes "
                        "nothing.",
                        true);
    char database[DEMO_PATH_MAX];
    char pdf[DEMO_WORKERS][DEMO_PATH_MAX];
    struct demo_facts facts = {.exit_code = {-1, -1}};
    struct audit audit = {false, false};
    aster_status status = aster_demo_stage_path(stage, "invoices.db", database, error);
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "rendered-by-A.pdf", pdf[DEMO_WORKER_A], error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "rendered-by-B.pdf", pdf[DEMO_WORKER_B], error);
    }
    if (status == ASTER_OK) {
        status = create_store(database, !stage->sabotaged, error);
    }
    if (status == ASTER_OK) {
        const struct demo_script script = {.mode = stage->sabotaged ? DEMO_MODE_UNCHECKED : DEMO_MODE_FENCED,
                                           .incident = &aster_demo_stopping,
                                           .database = database,
                                           .pdf = {pdf[DEMO_WORKER_A], pdf[DEMO_WORKER_B]},
                                           .ttl_ms = TTL_MS,
                                           .step_ms = {STEP_A_MS, STEP_B_MS},
                                           .term = "epoch",
                                           .show = stage->show,
                                           .show_user = stage->show_user};
        act->start_ns = aster_demo_now_ns();
        status = aster_demo_direct(&script, act, &facts, error);
    }
    if (status == ASTER_OK) {
        status = read_audit(database, &audit, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_keep_published(stage, &facts.after, error);
    }
    judge_lease(stage->expectations, &facts, &audit);
    judge_rejection(stage->expectations, &facts, &audit);
    judge_store(stage->expectations, &facts);
    aster_demo_facts_fini(&facts);
    return status;
}
