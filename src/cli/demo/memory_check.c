/* Act 2: the same rule in memory. The closure counts how often it ran, so that "rejected" means that not one of its
 * instructions was executed. */
#include <inttypes.h>

#include "aster/lease.h"
#include "aster/memory.h"
#include "base/error.h"
#include "cli/demo/acts.h"

#define RESOURCE "catalog"
#define TTL_MS 30000
#define RELEASE_TIMEOUT_MS 5000

struct check {
    struct demo_act *act;
    struct demo_expectations *expectations;
    struct aster_serializer *serializer;
    int runs; /* of the closure */
};

static aster_status count_run(void *tx, void *user)
{
    (void)tx;
    struct check *check = user;
    check->runs++;
    return ASTER_OK;
}

struct attempt {
    enum demo_worker writer;
    int64_t epoch;           /* of the fence */
    enum demo_worker holder; /* of the fence */
    enum aster_reason reason;
    const char *what; /* for the timeline */
    const char *name;
    const char *text; /* what must come of it */
};

/* Write under a fence and hold the verdict, and what the closure did, against what must come of it. */
static aster_status write_once(struct check *check, const struct attempt *attempt, struct aster_error *error)
{
    const struct aster_fence fence = {aster_text(RESOURCE), attempt->epoch,
                                      aster_text(aster_demo_identity[attempt->holder])};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    int runs_before = check->runs;
    aster_status status = aster_mutate_fenced(
        check->serializer, &fence, aster_text(aster_demo_identity[attempt->writer]), count_run, check, &verdict, error);
    if (status != ASTER_OK) {
        return status;
    }
    int ran = check->runs - runs_before;
    int must_run = attempt->reason == ASTER_REASON_NONE;
    bool met = verdict.reason == attempt->reason && ran == must_run;
    aster_demo_act_add(check->act, aster_demo_now_ns(), attempt->writer == DEMO_WORKER_A ? DEMO_LANE_A : DEMO_LANE_B,
                       verdict.reason == ASTER_REASON_NONE ? DEMO_MARK_WRITTEN : DEMO_MARK_REJECTED, attempt->epoch,
                       "writes under %s: %s; the closure %s", attempt->what,
                       verdict.reason == ASTER_REASON_NONE ? "accepted" : aster_reason_name(verdict.reason),
                       ran != 0 ? "ran" : "did not run");
    aster_demo_expect(check->expectations, met, attempt->name, attempt->text,
                      "verdict %s (carried %" PRId64 ", current %" PRId64 "), the closure ran %d times",
                      aster_reason_name(verdict.reason), verdict.carried_epoch, verdict.current_epoch, ran);
    return ASTER_OK;
}

static aster_status acquire(struct check *check, enum demo_worker worker, struct aster_lease **lease, int64_t *epoch,
                            struct aster_error *error)
{
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    aster_status status = aster_lease_acquire(check->serializer, aster_text(RESOURCE),
                                              aster_text(aster_demo_identity[worker]), &options, lease, NULL, error);
    const struct aster_fence *fence = status == ASTER_OK && *lease != NULL ? aster_lease_fence(*lease) : NULL;
    if (status == ASTER_OK && fence == NULL) {
        status =
            aster_error_set(error, ASTER_ERR_IO, "%s was not granted \"" RESOURCE "\"", aster_demo_identity[worker]);
    }
    if (status == ASTER_OK) {
        *epoch = fence->epoch;
        aster_demo_act_add(check->act, aster_demo_now_ns(), worker == DEMO_WORKER_A ? DEMO_LANE_A : DEMO_LANE_B,
                           DEMO_MARK_GRANTED, *epoch, "acquires " RESOURCE ": epoch %" PRId64, *epoch);
    }
    return status;
}

static aster_status write_after_release(struct check *check, int64_t saved, struct aster_error *error)
{
    const struct attempt attempt = {DEMO_WORKER_A,
                                    saved,
                                    DEMO_WORKER_A,
                                    ASTER_REASON_STALE_EPOCH,
                                    "its saved fence",
                                    "memory.after-release",
                                    "in memory: A's saved fence after its release is rejected before the closure runs"};
    return write_once(check, &attempt, error);
}

static aster_status write_after_successor(struct check *check, int64_t saved, int64_t current,
                                          struct aster_error *error)
{
    const struct attempt attempts[] = {
        {DEMO_WORKER_A, saved, DEMO_WORKER_A, ASTER_REASON_STALE_EPOCH, "its saved fence", "memory.after-successor",
         "in memory: the same once B holds the lease"},
        {DEMO_WORKER_B, current, DEMO_WORKER_B, ASTER_REASON_NONE, "its current fence", "memory.current",
         "in memory: B's write under its current fence succeeds"},
        {DEMO_WORKER_A, current, DEMO_WORKER_B, ASTER_REASON_NOT_HOLDER, "B's current fence",
         "memory.not-a-bearer-token", "in memory: B's fence in A's hands is rejected"},
    };
    aster_status status = ASTER_OK;
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0] && status == ASTER_OK; i++) {
        status = write_once(check, &attempts[i], error);
    }
    return status;
}

aster_status aster_demo_memory_check(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error)
{
    aster_demo_act_init(act, "Act 2: the delayed write in memory",
                        "One process, the memory serializer. A closure that counts its runs stands for the write.",
                        false);
    struct check check = {.act = act, .expectations = stage->expectations};
    struct aster_lease *lease_a = NULL;
    struct aster_lease *lease_b = NULL;
    int64_t saved = 0;
    int64_t current = 0;
    aster_status status = aster_memory_open(NULL, &check.serializer, error);
    if (status == ASTER_OK) {
        status = acquire(&check, DEMO_WORKER_A, &lease_a, &saved, error);
    }
    if (status == ASTER_OK) {
        status = aster_lease_release(lease_a, RELEASE_TIMEOUT_MS, NULL, error);
    }
    if (status == ASTER_OK) {
        aster_demo_act_add(act, aster_demo_now_ns(), DEMO_LANE_A, DEMO_MARK_RELEASED, saved,
                           "releases it, which ends epoch 1 (the row is at 2), but keeps a copy of its fence")
            ->key = true;
        status = write_after_release(&check, saved, error);
    }
    if (status == ASTER_OK) {
        status = acquire(&check, DEMO_WORKER_B, &lease_b, &current, error);
    }
    if (status == ASTER_OK) {
        status = write_after_successor(&check, saved, current, error);
    }
    aster_demo_expect(stage->expectations, check.runs == 1, "memory.runs",
                      "in memory: of four writes the closure saw exactly one", "it ran %d times", check.runs);
    aster_lease_destroy(lease_a);
    aster_lease_destroy(lease_b);
    aster_serializer_destroy(check.serializer);
    return status;
}
