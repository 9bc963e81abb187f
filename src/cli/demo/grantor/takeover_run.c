/* Act 1 over QUIC: worker A is cut off with a write on its way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/grantor/parts.h"
#include "cli/demo/worker.h"

#define TTL_MS 2000
#define STEP_A_MS 310 /* nine steps: longer than one ttl, so that the lease must be renewed */
#define STEP_B_MS 100

/* What the acts of the incident need. */
struct network {
    struct demo_grantor *grantor;
    struct aster_serializer *operator; /* past the relay */
    bool sabotaged;
};

static aster_status cut(void *user, struct demo_process *first, sqlite3 *db, bool *begun, struct aster_error *error)
{
    (void)first;
    (void)db;
    (void)error;
    struct network *network = user;
    if (!network->sabotaged) {
        atomic_store(&network->grantor->relay.dark, ASTER_RELAY_BOTH_WAYS);
    }
    *begun = true;
    return ASTER_OK;
}

static aster_status restore(void *user, struct demo_process *first, struct aster_error *error)
{
    (void)first;
    (void)error;
    struct network *network = user;
    atomic_store(&network->grantor->relay.dark, 0);
    return ASTER_OK;
}

/* The fenced value, and who holds its resource, as the operator sees them. */
static aster_status read_value(void *user, sqlite3 *db, struct demo_stored *stored, struct aster_error *error)
{
    (void)db;
    struct network *network = user;
    struct aster_reply reply = ASTER_REPLY_INIT;
    const struct aster_snapshot *row = &reply.decision.snapshot;
    aster_status status = aster_inspect(network->operator, aster_text(DEMO_RESOURCE), &reply, error);
    unsigned char *pdf = status == ASTER_OK ? malloc(row->value.size + 1) : NULL;
    if (status == ASTER_OK && pdf == NULL) {
        status = aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the invoice");
    }
    if (status == ASTER_OK) {
        if (row->value.size > 0) {
            memcpy(pdf, row->value.data, row->value.size);
        }
        *stored = (struct demo_stored){
            .found = row->value.size > 0, .epoch = row->epoch, .pdf = pdf, .pdf_size = row->value.size};
        snprintf(stored->published_by, sizeof stored->published_by, "revision %" PRId64, row->value_revision);
    }
    aster_reply_fini(&reply);
    return status;
}

/* What the grantor itself has written down, read back after the run. */
struct audit {
    const struct demo_grantor *grantor;
    bool takeover;  /* worker B replaced worker A */
    bool rejection; /* a write of worker A under its old epoch was rejected */
};

static bool note_event(const struct aster_event *event, void *user)
{
    struct audit *audit = user;
    struct aster_bytes a = aster_text(audit->grantor->id[DEMO_NODE_A]);
    struct aster_bytes b = aster_text(audit->grantor->id[DEMO_NODE_B]);
    if (event->kind == ASTER_EVENT_TAKEOVER && event->epoch == 2 && aster_bytes_equal(event->actor, b) &&
        aster_bytes_equal(event->previous, a)) {
        audit->takeover = true;
    }
    if (event->kind == ASTER_EVENT_FENCE_REJECTED && event->reason == ASTER_REASON_STALE_EPOCH &&
        event->carried_epoch == 1 && event->epoch == 2 && aster_bytes_equal(event->actor, a)) {
        audit->rejection = true;
    }
    return true;
}

static aster_status read_audit(const struct network *network, struct audit *audit, struct aster_error *error)
{
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.resource = aster_text(DEMO_RESOURCE);
    return aster_history(network->operator, & query, note_event, audit, error);
}

static void judge_lease(struct demo_expectations *list, const struct demo_facts *facts, const struct audit *audit)
{
    const struct demo_message *a = facts->said[DEMO_WORKER_A];
    const struct demo_message *b = facts->said[DEMO_WORKER_B];
    aster_demo_expect(list, a[DEMO_SAYS_GRANTED].epoch == 1, "takeover.first-grant",
                      "worker A was granted epoch 1, over QUIC and through the relay", "granted epoch %" PRId64,
                      a[DEMO_SAYS_GRANTED].epoch);
    aster_demo_expect(list, a[DEMO_SAYS_RENEWED].count >= 1 && a[DEMO_SAYS_RENDERED].count > TTL_MS, "takeover.renewed",
                      "worker A rendered for longer than one ttl and kept its lease by renewing it",
                      "%" PRId64 " renewals, %" PRId64 " ms of rendering, ttl %d ms", a[DEMO_SAYS_RENEWED].count,
                      a[DEMO_SAYS_RENDERED].count, TTL_MS);
    aster_demo_expect(list,
                      strcmp(b[DEMO_SAYS_DENIED].word, "HELD_BY_OTHER") == 0 &&
                          strcmp(b[DEMO_SAYS_DENIED].text, aster_demo_identity[DEMO_WORKER_A]) == 0,
                      "takeover.no-theft", "worker B was denied while A's lease was alive", "denied: \"%s\" by \"%s\"",
                      b[DEMO_SAYS_DENIED].word, b[DEMO_SAYS_DENIED].text);
    aster_demo_expect(list, facts->interrupted && facts->interrupted_ms > TTL_MS && a[DEMO_SAYS_ARMED].epoch == 1,
                      "takeover.cut",
                      "worker A was cut off for longer than its lease, after its check had found epoch 1 valid",
                      "cut off %d, %" PRId64 " ms, checked epoch %" PRId64, facts->interrupted, facts->interrupted_ms,
                      a[DEMO_SAYS_ARMED].epoch);
    aster_demo_expect(list, b[DEMO_SAYS_GRANTED].epoch == 2 && audit->takeover, "takeover.takeover",
                      "worker B took over with epoch 2, and the grantor's history says from whom",
                      "granted epoch %" PRId64 ", takeover in the history: %d", b[DEMO_SAYS_GRANTED].epoch,
                      audit->takeover);
}

/* Both processes stamp with the one boot-time clock of this machine. */
static void judge_end(struct demo_expectations *list, const struct demo_facts *facts)
{
    const struct demo_message *ended = &facts->said[DEMO_WORKER_A][DEMO_SAYS_ENDED];
    const struct demo_message *granted = &facts->said[DEMO_WORKER_B][DEMO_SAYS_GRANTED];
    int64_t limit_ns = strtoll(ended->text, NULL, 10);
    int64_t gap_ms = (granted->at_ns - limit_ns) / ASTER_NS_PER_MS;
    bool heard = facts->heard[DEMO_WORKER_A][DEMO_SAYS_ENDED] && facts->heard[DEMO_WORKER_B][DEMO_SAYS_GRANTED];
    aster_demo_expect(
        list, facts->heard[DEMO_WORKER_A][DEMO_SAYS_ENDED] && ended->count == 0 && strcmp(ended->word, "LOST") == 0,
        "takeover.lost", "in the dark worker A's handle was LOST by itself and supplied no fence",
        "status \"%s\", supplies a fence: %" PRId64, ended->word, ended->count);
    aster_demo_expect(list, heard && limit_ns > 0 && gap_ms > 0, "takeover.no-overlap",
                      "A's self-limit came before B was granted, on one clock", "%" PRId64 " ms before", gap_ms);
}

static void judge_write(struct demo_expectations *list, const struct demo_facts *facts, const struct audit *audit)
{
    const struct demo_message *rejected = &facts->said[DEMO_WORKER_A][DEMO_SAYS_REJECTED];
    aster_demo_expect(list,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_REJECTED] && strcmp(rejected->word, "STALE_EPOCH") == 0 &&
                          rejected->epoch == 1 && rejected->count == 2 &&
                          !facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED],
                      "takeover.late-write-rejected",
                      "worker A's write, delayed by the network, was rejected: STALE_EPOCH, 1 against 2",
                      "%s \"%s\" carried %" PRId64 " current %" PRId64,
                      facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED] ? "the write was ACCEPTED;" : "decision",
                      rejected->word, rejected->epoch, rejected->count);
    aster_demo_expect(list, audit->rejection, "takeover.audited", "the grantor's history has that rejection",
                      "found: %d", audit->rejection);
}

static bool holds_file(const struct demo_stored *stored, const char *path)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = malloc(stored->pdf_size + 1);
    size_t size = file != NULL && bytes != NULL ? fread(bytes, 1, stored->pdf_size + 1, file) : 0;
    bool same = stored->found && size == stored->pdf_size && memcmp(bytes, stored->pdf, size) == 0;
    free(bytes);
    if (file != NULL) {
        fclose(file);
    }
    return same;
}

static void judge_value(struct demo_expectations *list, const struct demo_facts *facts, const char *rendered_by_b)
{
    const struct demo_stored *before = &facts->before;
    const struct demo_stored *after = &facts->after;
    const char *published = facts->said[DEMO_WORKER_B][DEMO_SAYS_PUBLISHED].text;
    char money[DEMO_MONEY_MAX];
    aster_demo_expect(list, holds_file(before, rendered_by_b) && before->epoch == 2, "takeover.published",
                      "worker B published under epoch 2 while A was cut off", "%zu bytes at epoch %" PRId64,
                      before->pdf_size, before->epoch);
    aster_demo_expect(list, aster_demo_stored_equal(before, after) && holds_file(after, rendered_by_b),
                      "takeover.unchanged", "after A's attempt the grantor holds B's invoice, byte for byte",
                      "%zu bytes, %s, before; %zu bytes, %s, after", before->pdf_size, before->published_by,
                      after->pdf_size, after->published_by);
    aster_demo_expect(list, aster_demo_stored_is_pdf(after), "takeover.is-a-pdf", "what the grantor holds is a PDF",
                      "%zu bytes", after->pdf_size);
    aster_demo_expect(list, strcmp(published, aster_demo_money(facts->order_total_cents, money)) == 0,
                      "takeover.up-to-date", "its total is that of the corrected order", "EUR %s, the order says %s",
                      published, money);
    aster_demo_expect(list,
                      facts->exit_code[DEMO_WORKER_A] == DEMO_WORKER_REFUSED &&
                          facts->exit_code[DEMO_WORKER_B] == DEMO_WORKER_PUBLISHED,
                      "takeover.exit-codes", "the processes ended so: A with 77 (refused), B with 0", "A %d, B %d",
                      facts->exit_code[DEMO_WORKER_A], facts->exit_code[DEMO_WORKER_B]);
}

static aster_status create_orders(const char *database, struct aster_error *error)
{
    sqlite3 *db = NULL;
    aster_status status = aster_demo_store_connect(database, &db, error);
    if (status == ASTER_OK) {
        status = aster_demo_store_create(db, NULL, error);
    }
    sqlite3_close(db);
    return status;
}

static aster_status direct(const struct demo_stage *stage, struct network *network, const char *database,
                           char pdf[DEMO_WORKERS][DEMO_PATH_MAX], struct demo_act *act, struct demo_facts *facts,
                           struct aster_error *error)
{
    struct demo_grantor *grantor = network->grantor;
    const struct demo_incident incident = {.begin = cut,
                                           .end = restore,
                                           .read = read_value,
                                           .user = network,
                                           .still_runs = true,
                                           .begins = "its network is cut, between its check and its write",
                                           .ends = "its network is back: the write is still on the way"};
    const struct demo_script script = {.mode = DEMO_MODE_GRANTOR,
                                       .incident = &incident,
                                       .holder = {grantor->id[DEMO_NODE_A], grantor->id[DEMO_NODE_B]},
                                       .grantor = {grantor->relayed, grantor->direct},
                                       .node = {grantor->node[DEMO_NODE_A], grantor->node[DEMO_NODE_B]},
                                       .database = database,
                                       .pdf = {pdf[DEMO_WORKER_A], pdf[DEMO_WORKER_B]},
                                       .ttl_ms = TTL_MS,
                                       .step_ms = {STEP_A_MS, STEP_B_MS},
                                       .term = "epoch",
                                       .show = stage->show,
                                       .show_user = stage->show_user};
    act->start_ns = aster_demo_now_ns();
    return aster_demo_direct(&script, act, facts, error);
}

aster_status aster_demo_takeover_run(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error)
{
    aster_demo_act_init(act, "Act 1: the lease is a grantor's, and so is the check of the write",
                        "The invoice is the fenced value of its resource. The late write arrives and changes nothing.",
                        true);
    act->third_lane = "grantor";
    char database[DEMO_PATH_MAX];
    char pdf[DEMO_WORKERS][DEMO_PATH_MAX];
    struct demo_facts facts = {.exit_code = {-1, -1}};
    struct network network = {.grantor = stage->grantor, .sabotaged = stage->sabotaged};
    struct audit audit = {.grantor = stage->grantor};
    aster_status status = aster_demo_stage_path(stage, "orders.db", database, error);
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "rendered-by-A.pdf", pdf[DEMO_WORKER_A], error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_stage_path(stage, "rendered-by-B.pdf", pdf[DEMO_WORKER_B], error);
    }
    if (status == ASTER_OK) {
        status = create_orders(database, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_grantor_connect(stage->grantor, DEMO_NODE_OPERATOR, &network.operator, error);
    }
    if (status == ASTER_OK) {
        status = direct(stage, &network, database, pdf, act, &facts, error);
    }
    if (status == ASTER_OK) {
        status = read_audit(&network, &audit, error);
    }
    if (status == ASTER_OK) {
        status = aster_demo_keep_published(stage, &facts.after, error);
    }
    judge_lease(stage->expectations, &facts, &audit);
    judge_end(stage->expectations, &facts);
    judge_write(stage->expectations, &facts, &audit);
    judge_value(stage->expectations, &facts, pdf[DEMO_WORKER_B]);
    aster_demo_facts_fini(&facts);
    aster_serializer_destroy(network.operator);
    return status;
}
