/* `aster revoke`: take a lease away from whoever holds it. */
#include <inttypes.h>

#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    int64_t epoch;
    const char *authority;
};

static const struct arguments defaults = {-1, NULL};

static const struct aster_option options[] = {
    {"epoch", 'e', ASTER_OPTION_COUNT, "N", "only if the lease is still this one: cannot hit a newer holder",
     offsetof(struct arguments, epoch), NULL},
    {"as", 0, ASTER_OPTION_TEXT, "NAME", "who revokes, for the history (default: this process)",
     offsetof(struct arguments, authority), NULL},
    ASTER_OPTION_END,
};

/* An end that took a lease away remembers it as the last one. */
static void print(const struct aster_decision *decision)
{
    const struct aster_snapshot *row = &decision->snapshot;
    bool was_held = row->last_holder.size > 0 && row->last_epoch_held == decision->epoch - 1;
    if (was_held) {
        printf("revoked from %.*s", (int)row->last_holder.size, (const char *)row->last_holder.data);
    } else {
        fputs("nobody held it", stdout);
    }
    printf(": every fence up to epoch %" PRId64 " is stale\n", decision->epoch - 1);
}

static int revoke(const struct aster_cli *cli, struct aster_bytes resource, struct aster_bytes authority, int64_t epoch)
{
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_revoke(serializer, resource, authority, epoch, &reply, &error) != ASTER_OK) {
        code = aster_cli_fail(cli, &error);
    } else if (reply.decision.outcome == ASTER_DENIED) {
        code = aster_cli_denied(cli, &reply.decision, authority, ASTER_EXIT_REFUSED);
    } else if (cli->json) {
        code = aster_json_print(aster_json_decision(&reply.decision), JSON_COMPACT, stdout);
    } else {
        print(&reply.decision);
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    const struct arguments *arguments = user;
    char storage[ASTER_HOLDER_SIZE];
    struct aster_bytes resource = aster_text(argv[0]);
    struct aster_bytes authority;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_holder_resolve(cli, arguments->authority, storage, &authority, &error) != ASTER_OK ||
        aster_resource_check(resource, &error) != ASTER_OK ||
        aster_identity_check(authority, "authority", &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return revoke(cli, resource, authority, arguments->epoch);
}

const struct aster_command aster_command_revoke = {
    .name = "revoke",
    .summary = "Take a lease away from its holder, at once",
    .operands = "RESOURCE",
    .operands_min = 1,
    .operands_max = 1,
    .details = "The holder's next write is refused, and `aster run` ends its command when its next renewal is denied.\n"
               "With --epoch (from `aster inspect`, or from the message of a refused acquire) nobody else is hit.",
    .example = "aster revoke nightly-report --epoch 7",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
