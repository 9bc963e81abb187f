/* `aster check`: is this fence current? `aster check store`: does this store refuse stale writers? */
#include <inttypes.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/check_store.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    struct aster_carried_options carried;
};

static const struct arguments defaults = {ASTER_CARRIED_OPTIONS_INIT};

static const struct aster_option options[] = {ASTER_CARRIED_OPTION_ROWS(struct arguments), ASTER_OPTION_END};

static struct aster_verdict judge(const struct aster_snapshot *snapshot, const struct aster_fence *fence)
{
    struct aster_row row = aster_row_absent(0);
    row.epoch = snapshot->epoch;
    row.held = snapshot->held;
    row.holder = snapshot->holder;
    return aster_fence_verdict(&row, snapshot->resource, fence, fence->holder);
}

static int report_json(const struct aster_snapshot *snapshot, struct aster_verdict verdict)
{
    bool current = verdict.reason == ASTER_REASON_NONE;
    return aster_json_print(json_pack("{s:b, s:s?, s:I, s:I, s:o}", "current", current, "reason",
                                      current ? NULL : aster_reason_name(verdict.reason), "carried_epoch",
                                      (json_int_t)verdict.carried_epoch, "current_epoch",
                                      (json_int_t)verdict.current_epoch, "row", aster_json_snapshot(snapshot)),
                            JSON_COMPACT, stdout);
}

/* Refused as the write itself would be. */
static int report(const struct aster_cli *cli, const struct aster_snapshot *snapshot, struct aster_verdict verdict,
                  struct aster_bytes holder)
{
    bool current = verdict.reason == ASTER_REASON_NONE;
    if (cli->json) {
        int failed = report_json(snapshot, verdict);
        return failed != ASTER_EXIT_OK ? failed : current ? ASTER_EXIT_OK : ASTER_EXIT_REFUSED;
    }
    if (current) {
        printf("current: epoch %" PRId64 "\n", verdict.current_epoch);
        return ASTER_EXIT_OK;
    }
    const struct aster_decision decision = {.struct_size = sizeof decision,
                                            .kind = ASTER_OP_PUT,
                                            .outcome = ASTER_DENIED,
                                            .reason = verdict.reason,
                                            .epoch = verdict.current_epoch,
                                            .carried_epoch = verdict.carried_epoch,
                                            .snapshot = *snapshot};
    return aster_cli_denied(cli, &decision, holder, ASTER_EXIT_REFUSED);
}

static int check_fence(const struct aster_cli *cli, const struct arguments *arguments, const char *resource)
{
    struct aster_carried carried;
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = aster_carried_resolve(cli, resource, &arguments->carried, &carried);
    if (code == ASTER_EXIT_OK) {
        code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    }
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_inspect(serializer, carried.fence.resource, &reply, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else {
        const struct aster_snapshot *row = &reply.decision.snapshot;
        code = report(cli, row, judge(row, &carried.fence), carried.fence.holder);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "store") == 0) {
        return aster_check_store(cli, argv[1]);
    }
    if (argc == 2) {
        return aster_cli_usage(cli, "either a RESOURCE, or the word store and a STORE");
    }
    return check_fence(cli, user, argc > 0 ? argv[0] : NULL);
}

const struct aster_command aster_command_check = {
    .name = "check",
    .summary = "Tell whether a fence is still the current one, or whether a store refuses stale writers",
    .operands = "[RESOURCE] | store STORE",
    .operands_max = 2,
    .details = "Exit status 0: it was, a moment ago; 77: it is not. It can save useless work, but protects nothing:\n"
               "the check that protects is the one inside the write (`aster put`, or a guarded table).\n"
               "With `store STORE`: a stale writer of our own against that store, on a resource that is forgotten\n"
               "afterwards; exit status 1 when the store let through what it must refuse.",
    .example = "aster run nightly-report -- sh -c 'aster check && make report'",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
