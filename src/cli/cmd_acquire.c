/* `aster acquire`: a lease without a process to hold it; for scripts that renew and release themselves. */
#include <inttypes.h>
#include <string.h>

#include "cli/answer.h"
#include "cli/carried.h"
#include "cli/output.h"
#include "cli/store.h"

struct arguments {
    int64_t ttl_ms;
    int64_t wait_ms;
    const char *holder;
    bool own;
    bool export_lines;
};

static const struct arguments defaults = {ASTER_LEASE_TTL_DEFAULT_MS, 0, NULL, false, false};

static const struct aster_option options[] = {
    {"ttl", 't', ASTER_OPTION_DURATION, "D", "how long it lasts without a renewal (default 30s)",
     offsetof(struct arguments, ttl_ms), NULL},
    {"wait", 'w', ASTER_OPTION_DURATION, "D", "wait so long while somebody else holds it (default: try once)",
     offsetof(struct arguments, wait_ms), NULL},
    {"holder", 'H', ASTER_OPTION_TEXT, "NAME", "who holds it (default: an identity no other process has)",
     offsetof(struct arguments, holder), NULL},
    {"own", 0, ASTER_OPTION_FLAG, NULL, "also when HOLDER holds it already: the earlier lease is fenced off",
     offsetof(struct arguments, own), NULL},
    {"export", 0, ASTER_OPTION_FLAG, NULL, "print `export` lines for a shell's eval",
     offsetof(struct arguments, export_lines), NULL},
    ASTER_OPTION_END,
};

static void print_export(const char *name, struct aster_bytes value)
{
    printf("export %s=", name);
    aster_print_quoted(value, stdout);
    putchar('\n');
}

static int print(const struct aster_cli *cli, const struct arguments *arguments, const struct aster_store_name *store,
                 const struct aster_decision *decision)
{
    char text[ASTER_FENCE_TEXT_MAX];
    struct aster_error error = ASTER_ERROR_INIT;
    const struct aster_snapshot *row = &decision->snapshot;
    struct aster_fence fence = {row->resource, decision->epoch, row->holder};
    if (aster_fence_format(&fence, text, sizeof text, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (cli->json) {
        json_t *json = aster_json_decision(decision);
        json_object_set_new(json, "fence", json_string(text));
        return aster_json_print(json, JSON_COMPACT, stdout);
    }
    if (arguments->export_lines) {
        char epoch[24];
        snprintf(epoch, sizeof epoch, "%" PRId64, decision->epoch);
        print_export("ASTER_RESOURCE", row->resource);
        print_export("ASTER_EPOCH", aster_text(epoch));
        print_export("ASTER_HOLDER", row->holder);
        print_export("ASTER_FENCE", aster_text(text));
        print_export("ASTER_STORE", aster_text(store->text));
        return ASTER_EXIT_OK;
    }
    aster_print_snapshot(row, stdout);
    printf("%-15s%s\n", "fence", text);
    return ASTER_EXIT_OK;
}

static int acquire(const struct aster_cli *cli, const struct arguments *arguments, struct aster_bytes resource,
                   struct aster_bytes holder, struct aster_serializer *serializer, struct aster_reply *reply)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_lease *lease = NULL;
    struct aster_lease_options lease_options = ASTER_LEASE_OPTIONS_INIT;
    lease_options.ttl_ms = arguments->ttl_ms;
    lease_options.wait_ms = arguments->wait_ms;
    lease_options.take_over_own = arguments->own;
    if (aster_lease_acquire(serializer, resource, holder, &lease_options, &lease, reply, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (lease == NULL) {
        return aster_cli_denied(cli, &reply->decision, holder, ASTER_EXIT_NOT_ACQUIRED);
    }
    aster_lease_destroy(lease); /* stops renewing and releases nothing: the lease is the caller's from here */
    return ASTER_EXIT_OK;
}

/* Nobody could read which lease it is, so nobody could renew or release it. */
static void give_back(struct aster_serializer *serializer, const struct aster_decision *granted)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_RELEASE;
    operation.resource = granted->snapshot.resource;
    operation.caller = granted->snapshot.holder;
    operation.epoch = granted->epoch;
    aster_serializer_call(serializer, &operation, 0, &reply, NULL);
    aster_reply_fini(&reply);
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    const struct arguments *arguments = user;
    char storage[ASTER_HOLDER_SIZE];
    struct aster_bytes resource = aster_text(argv[0]);
    struct aster_bytes holder;
    struct aster_store_name store;
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_holder_resolve(cli, arguments->holder, storage, &holder, &error) != ASTER_OK ||
        aster_resource_check(resource, &error) != ASTER_OK ||
        aster_identity_check(holder, "holder", &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int code = aster_cli_check_ttl(cli, arguments->ttl_ms);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    code = aster_store_open(cli, ASTER_STORE_CREATE, &store, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    code = acquire(cli, arguments, resource, holder, serializer, &reply);
    if (code == ASTER_EXIT_OK) {
        code = print(cli, arguments, &store, &reply.decision);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            give_back(serializer, &reply.decision);
        }
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

const struct aster_command aster_command_acquire = {
    .name = "acquire",
    .summary = "Take a lease and leave it to you to renew and release it",
    .operands = "RESOURCE",
    .operands_min = 1,
    .operands_max = 1,
    .details = "Nothing renews it: it is over after its ttl. To hold a lease while a command runs, use `aster run`.\n"
               "The same holder name is no permission: who acquires twice is refused the second time (see --own).",
    .example = "lease=$(aster acquire nightly-report --ttl 10m --export) && eval \"$lease\" && { ./report.sh; aster "
               "release; }",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
