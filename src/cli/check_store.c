#include "cli/check_store.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"
#include "platform/entropy.h"
#include "platform/files.h"

#define TTL_MS 60000
#define SHORT_TTL_MS 200
#define TAKEOVER_PATIENCE 100 /* tries, at SHORT_TTL_MS / 4 each: a busy store may be late, never early */

struct check {
    struct aster_serializer *serializer;
    struct aster_bytes holder;
    char resource[64];
    int64_t epoch; /* of the last grant */
    struct aster_reply reply;
    json_t *json; /* steps, or NULL for lines */
    int wrong;
    aster_status status; /* the first fault ends it all */
    struct aster_error error;
};

static void report(struct check *check, bool right, const char *what)
{
    char said[160];
    check->wrong += !right;
    aster_decision_describe(&check->reply.decision, said, sizeof said);
    if (check->json != NULL) {
        json_array_append_new(
            check->json, json_pack("{s:s, s:b, s:s?}", "step", what, "right", right, "answer", right ? NULL : said));
    } else if (right) {
        printf("OK    %s\n", what);
    } else {
        printf("WRONG %s; the store answered: %s\n", what, said);
    }
}

/* Ask one operation; false when an earlier one failed, or this one does. */
static bool ask(struct check *check, enum aster_operation_kind kind, int64_t epoch, int64_t ttl_ms)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(check->resource);
    operation.caller = check->holder;
    operation.epoch = epoch;
    operation.ttl_ms = ttl_ms;
    if (kind == ASTER_OP_PUT) {
        operation.holder = check->holder;
        operation.value = aster_text("checked");
        operation.value_revision = check->reply.decision.snapshot.value_revision;
    }
    if (check->status == ASTER_OK) {
        check->status = aster_serializer_call(check->serializer, &operation, 0, &check->reply, &check->error);
    }
    return check->status == ASTER_OK;
}

static bool granted(const struct check *check)
{
    return check->reply.decision.outcome == ASTER_GRANTED;
}

static bool denied(const struct check *check, enum aster_reason reason)
{
    return !granted(check) && check->reply.decision.reason == reason;
}

static void acquire(struct check *check, int64_t ttl_ms, const char *what)
{
    int64_t before = check->epoch;
    if (ask(check, ASTER_OP_ACQUIRE, 0, ttl_ms)) {
        report(check, granted(check) && check->reply.decision.epoch > before, what);
        check->epoch = granted(check) ? check->reply.decision.epoch : before;
    }
}

static void check_writes(struct check *check, int64_t stale)
{
    if (ask(check, ASTER_OP_PUT, stale, 0)) {
        report(check, denied(check, ASTER_REASON_STALE_EPOCH), "the late write of the replaced holder is refused");
    }
    if (ask(check, ASTER_OP_PUT, check->epoch + 1, 0)) {
        report(check, denied(check, ASTER_REASON_FUTURE_EPOCH), "an epoch that was never granted is refused");
    }
    if (ask(check, ASTER_OP_INSPECT, 0, 0) && ask(check, ASTER_OP_PUT, check->epoch, 0)) {
        report(check, granted(check), "the holder writes under its fence");
    }
}

/* The holder dies: nobody releases. */
static void check_takeover(struct check *check)
{
    int64_t dead = check->epoch;
    bool early = false;
    for (int i = 0; i < TAKEOVER_PATIENCE && ask(check, ASTER_OP_ACQUIRE, 0, TTL_MS); i++) {
        if (granted(check)) {
            break;
        }
        early = early || check->reply.decision.reason != ASTER_REASON_HELD_BY_OTHER;
        aster_pause_ns(SHORT_TTL_MS * INT64_C(250000));
    }
    if (check->status == ASTER_OK) {
        report(check, granted(check) && !early && check->reply.decision.takeover && check->reply.decision.epoch > dead,
               "a dead holder is replaced once its ttl is over");
        check->epoch = granted(check) ? check->reply.decision.epoch : dead;
        check_writes(check, dead);
    }
}

static void run_steps(struct check *check)
{
    acquire(check, TTL_MS, "a free resource is granted");
    int64_t first = check->epoch;
    if (ask(check, ASTER_OP_ACQUIRE, 0, TTL_MS)) {
        report(check, denied(check, ASTER_REASON_HELD_BY_OTHER), "a held one is not granted again");
    }
    if (ask(check, ASTER_OP_RENEW, first, 0)) {
        report(check, granted(check), "its holder renews");
    }
    if (ask(check, ASTER_OP_RELEASE, first, 0)) {
        report(check, granted(check), "its holder releases");
    }
    acquire(check, SHORT_TTL_MS, "the next grant has a greater epoch");
    if (ask(check, ASTER_OP_RENEW, first, 0)) {
        report(check, denied(check, ASTER_REASON_EPOCH_MISMATCH), "the former epoch renews nothing");
    }
    check_takeover(check);
}

static void clean_up(struct check *check)
{
    struct aster_error first = check->error;
    aster_status status = check->status;
    check->status = ASTER_OK;
    ask(check, ASTER_OP_RELEASE, check->epoch, 0);
    ask(check, ASTER_OP_FORGET, 0, 0);
    check->status = status;
    check->error = first;
}

static int conclude(const struct aster_cli *cli, struct check *check, const char *store)
{
    int code = check->wrong == 0 ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
    if (check->status != ASTER_OK) {
        json_decref(check->json);
        return aster_cli_fail(cli, &check->error);
    }
    if (check->json != NULL) {
        int failed = aster_json_print(
            json_pack("{s:s, s:b, s:o}", "store", store, "right", check->wrong == 0, "steps", check->json),
            JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    printf("%s\n", code == ASTER_EXIT_OK ? "the store refuses stale writers"
                                         : "do not rely on this store: see the lines that begin with WRONG");
    return code;
}

int aster_check_store(const struct aster_cli *cli, const char *store)
{
    struct check check = {.reply = ASTER_REPLY_INIT, .error = ASTER_ERROR_INIT};
    struct aster_cli there = *cli;
    struct aster_store_name name;
    char holder[ASTER_HOLDER_SIZE];
    uint64_t random = 0;
    there.store = store != NULL ? store : cli->store;
    int code = aster_store_open(&there, ASTER_STORE_MUST_EXIST, &name, &check.serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    check.json = cli->json ? json_array() : NULL;
    check.status = aster_entropy_fill(&random, sizeof random, &check.error);
    if (check.status == ASTER_OK) {
        check.status = aster_holder_resolve(&there, NULL, holder, &check.holder, &check.error);
    }
    snprintf(check.resource, sizeof check.resource, "aster-check/%016" PRIx64, random);
    if (check.status == ASTER_OK) {
        run_steps(&check);
        clean_up(&check);
    }
    code = conclude(cli, &check, name.shown);
    aster_reply_fini(&check.reply);
    aster_serializer_destroy(check.serializer);
    return code;
}
