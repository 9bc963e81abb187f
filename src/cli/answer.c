#include "cli/answer.h"

#include <inttypes.h>

#include "base/error.h"
#include "cli/output.h"

static void next_steps(const struct aster_cli *cli, const struct aster_decision *decision)
{
    const struct aster_snapshot *row = &decision->snapshot;
    int size = (int)row->resource.size;
    const char *resource = row->resource.data;
    switch (decision->reason) {
    case ASTER_REASON_HELD_BY_OTHER:
        fprintf(stderr, "wait for it:   aster %s --wait 30s ...\n", cli->command);
        fprintf(stderr, "take it away:  aster revoke '%.*s' --epoch %" PRId64 "\n", size, resource, row->epoch);
        break;
    case ASTER_REASON_REVISION_MISMATCH:
        fprintf(stderr, "read it again: aster get '%.*s' (its revision is now %" PRId64 ")\n", size, resource,
                row->value_revision);
        break;
    case ASTER_REASON_EPOCH_MISMATCH:
    case ASTER_REASON_STALE_EPOCH:
    case ASTER_REASON_NOT_HELD:
    case ASTER_REASON_EXPIRED:
    case ASTER_REASON_NOT_HOLDER:
        fprintf(stderr, "look again:    aster inspect '%.*s'; aster history '%.*s'\n", size, resource, size, resource);
        break;
    default:
        break;
    }
}

int aster_cli_denied(const struct aster_cli *cli, const struct aster_decision *decision, int code)
{
    char line[1200];
    aster_decision_describe(decision, line, sizeof line);
    fprintf(stderr, "aster %s: %s\n", cli->command, line);
    if (cli->json) {
        int failed = aster_json_print(aster_json_decision(decision), JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    aster_print_snapshot(&decision->snapshot, stderr);
    next_steps(cli, decision);
    return code;
}

int aster_cli_call(const struct aster_cli *cli, struct aster_serializer *serializer,
                   const struct aster_operation *operation, struct aster_reply *reply)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_serializer_call(serializer, operation, 0, reply, &error);
    if (status != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (reply->decision.outcome == ASTER_DENIED) {
        bool taken = reply->decision.reason == ASTER_REASON_HELD_BY_OTHER;
        return aster_cli_denied(cli, &reply->decision, taken ? ASTER_EXIT_NOT_ACQUIRED : ASTER_EXIT_REFUSED);
    }
    return ASTER_EXIT_OK;
}
