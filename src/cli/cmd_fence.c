/* `aster fence`: bring the current fence of a resource to a Redis that checks it, or look at what it has. */
#include <inttypes.h>
#include <string.h>

#include "cli/carried.h"
#include "cli/output.h"
#include "cli/redis/redis.h"
#include "cli/store.h"

struct arguments {
    const char *to;
    const char *key;
};

static const struct arguments defaults = {NULL, NULL};

static const struct aster_option options[] = {
    {"to", 't', ASTER_OPTION_TEXT, "URL", "redis://[USER@]HOST[:PORT] or redis-socket:PATH",
     offsetof(struct arguments, to), NULL},
    {"key", 'k', ASTER_OPTION_TEXT, "KEY", "the key of the fence row (default: aster:fence:{RESOURCE})",
     offsetof(struct arguments, key), NULL},
    ASTER_OPTION_END,
};

static int report(const struct aster_cli *cli, struct aster_bytes resource, const struct aster_redis_fence *fence,
                  const char *what)
{
    if (cli->json) {
        return aster_json_print(json_pack("{s:o, s:I, s:s?, s:b}", "resource", aster_json_bytes(resource), "epoch",
                                          (json_int_t)fence->epoch, "holder",
                                          fence->holder[0] != '\0' ? fence->holder : NULL, "advanced", fence->advanced),
                                JSON_COMPACT, stdout);
    }
    printf("%s: epoch %" PRId64 ", ", what, fence->epoch);
    if (fence->epoch == 0) {
        printf("never pushed\n");
    } else if (fence->holder[0] == '\0') {
        printf("held by nobody\n");
    } else {
        printf("held by %s\n", fence->holder);
    }
    return ASTER_EXIT_OK;
}

/* Redis having a newer epoch than the store is no small matter: say so, and fail. */
static int report_push(const struct aster_cli *cli, struct aster_bytes resource, int64_t pushed,
                       const struct aster_redis_fence *fence)
{
    int code = report(cli, resource, fence, fence->advanced ? "pushed" : "there already");
    if (code == ASTER_EXIT_OK && fence->epoch > pushed) {
        fprintf(stderr,
                "aster fence: the store's epoch is %" PRId64 ", Redis has %" PRId64
                ": --store names another store, or it was restored from a backup\n",
                pushed, fence->epoch);
        code = ASTER_EXIT_REFUSED;
    }
    return code;
}

static int push(const struct aster_cli *cli, const struct arguments *arguments, struct aster_redis *redis,
                struct aster_bytes resource)
{
    struct aster_serializer *serializer = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_redis_fence fence = {0};
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    const struct aster_snapshot *row = &reply.decision.snapshot;
    aster_status status = aster_inspect(serializer, resource, &reply, &error);
    if (status == ASTER_OK) {
        status = aster_redis_push(redis, arguments->key, resource, row->epoch, row->holder, &fence, &error);
    }
    code = status == ASTER_OK ? report_push(cli, resource, row->epoch, &fence) : aster_cli_fail(cli, &error);
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}

static int show(const struct aster_cli *cli, const struct arguments *arguments, struct aster_redis *redis,
                struct aster_bytes resource)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_redis_fence fence = {0};
    return aster_redis_look(redis, arguments->key, resource, &fence, &error) == ASTER_OK
               ? report(cli, resource, &fence, "Redis has")
               : aster_cli_fail(cli, &error);
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    const struct arguments *arguments = user;
    struct aster_redis *redis = NULL;
    struct aster_bytes resource;
    struct aster_error error = ASTER_ERROR_INIT;
    bool pushes = strcmp(argv[0], "push") == 0;
    if (!pushes && strcmp(argv[0], "show") != 0) {
        return aster_cli_usage(cli, "a fence can be pushed or shown");
    }
    if (arguments->to == NULL) {
        return aster_cli_usage(cli, "--to redis://HOST:PORT is missing: which Redis?");
    }
    int code = aster_resource_resolve(cli, argc > 1 ? argv[1] : NULL, &resource);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (aster_redis_open(arguments->to, &redis, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    code = pushes ? push(cli, arguments, redis, resource) : show(cli, arguments, redis, resource);
    aster_redis_close(redis);
    return code;
}

const struct aster_command aster_command_fence = {
    .name = "fence",
    .summary = "Push the current fence of a resource to a Redis that checks it",
    .operands = "push|show [RESOURCE]",
    .operands_min = 1,
    .operands_max = 2,
    .words = "push show",
    .details = "Redis is no grantor: it is told the epoch, only ever forward, and refuses writes under an older one "
               "from then\n"
               "on. Push after each grant and each release; docs/redis.md says what that guarantees. The password, if "
               "any, is\n"
               "in ASTER_REDIS_PASSWORD.",
    .example = "aster run cache-writer -- sh -c 'aster fence push --to redis://127.0.0.1 && exec ./fill-cache'",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .run = run,
};
