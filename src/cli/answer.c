#include "cli/answer.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "cli/output.h"
#include "cli/store.h"

static bool has_option(const struct aster_cli *cli, const char *name)
{
    const struct aster_option *option = aster_command_find(cli->command)->options;
    while (option->name != NULL && strcmp(option->name, name) != 0) {
        option++;
    }
    return option->name != NULL;
}

static void print_paste(const char *purpose, const char *command, struct aster_bytes resource)
{
    fprintf(stderr, "  %-15saster %s ", purpose, command);
    aster_print_quoted(resource, stderr);
}

static void paste_for_held(const struct aster_cli *cli, const struct aster_snapshot *row, struct aster_bytes caller)
{
    const char *rest = aster_command_find(cli->command)->after_dashes ? " -- ...\n" : "\n";
    if (has_option(cli, "own") && aster_bytes_equal(caller, row->holder)) {
        print_paste("it is yours:", cli->command, row->resource);
        if (!aster_store_is_grantor(cli->store)) { /* there the holder is the node */
            fputs(" --holder ", stderr);
            aster_print_quoted(caller, stderr);
        }
        fprintf(stderr, " --own%s", rest);
    } else if (has_option(cli, "wait")) {
        print_paste("wait for it:", cli->command, row->resource);
        fprintf(stderr, " --wait 30s%s", rest);
    }
    print_paste("take it away:", "revoke", row->resource);
    fprintf(stderr, " --epoch %" PRId64 "\n", row->epoch);
}

static void next_steps(const struct aster_cli *cli, const struct aster_decision *decision, struct aster_bytes caller)
{
    const struct aster_snapshot *row = &decision->snapshot;
    switch (decision->reason) {
    case ASTER_REASON_HELD_BY_OTHER:
        paste_for_held(cli, row, caller);
        break;
    case ASTER_REASON_REVISION_MISMATCH:
        print_paste("read it again:", "get", row->resource);
        fprintf(stderr, " (its revision is now %" PRId64 ")\n", row->value_revision);
        break;
    case ASTER_REASON_EPOCH_MISMATCH:
    case ASTER_REASON_STALE_EPOCH:
    case ASTER_REASON_FUTURE_EPOCH:
    case ASTER_REASON_NOT_HELD:
    case ASTER_REASON_EXPIRED:
    case ASTER_REASON_NOT_HOLDER:
        print_paste("what happened:", "history", row->resource);
        fputs(" --limit 9\n", stderr);
        break;
    default:
        break;
    }
}

int aster_cli_denied(const struct aster_cli *cli, const struct aster_decision *decision, struct aster_bytes caller,
                     int code)
{
    char line[1200];
    if (decision->reason == ASTER_REASON_UNAUTHORIZED) {
        code = ASTER_EXIT_REFUSED; /* waiting and trying again do not help */
    }
    aster_decision_describe(decision, line, sizeof line);
    fprintf(stderr, "aster %s: %s\n", cli->command, line);
    if (cli->json) {
        int failed = aster_json_print(aster_json_decision(decision), JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    next_steps(cli, decision, caller);
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
        return aster_cli_denied(cli, &reply->decision, operation->caller, ASTER_EXIT_REFUSED);
    }
    return ASTER_EXIT_OK;
}
