/* Aster's function library in a Redis. */
#include <string.h>

#include "cli/output.h"
#include "cli/redis/redis.h"
#include "cli/schema/schema.h"

static int check_arguments(const struct aster_cli *cli, const struct aster_schema_arguments *arguments, bool needs_to)
{
    if (arguments->table != NULL) {
        return aster_cli_usage(cli, "Redis has no tables to protect: write through the functions (docs/redis.md)");
    }
    if (needs_to && arguments->to == NULL) {
        return aster_cli_usage(cli, "--to redis://HOST:PORT is missing: which Redis?");
    }
    return ASTER_EXIT_OK;
}

static int print(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    int code = check_arguments(cli, arguments, false);
    if (code == ASTER_EXIT_OK) {
        fputs(aster_redis_library(), stdout);
    }
    return code;
}

static int report(const struct aster_cli *cli, const char *to, const char *state)
{
    int code = state == NULL ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
    if (cli->json) {
        int failed =
            aster_json_print(json_pack("{s:s, s:b, s:s?}", "redis", to, "intact", state == NULL, "problem", state),
                             JSON_COMPACT, stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    if (state == NULL) {
        printf("OK    Aster's functions are loaded, of this version\n");
    } else {
        printf("WRONG %s; `aster schema apply redis --to %s` loads them\n", state, to);
    }
    return code;
}

static int visit(const struct aster_cli *cli, const struct aster_schema_arguments *arguments, bool load)
{
    struct aster_redis *redis = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    const char *state = NULL;
    int code = check_arguments(cli, arguments, true);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    aster_status status = aster_redis_open(arguments->to, &redis, &error);
    if (status == ASTER_OK && load) {
        status = aster_redis_load(redis, &error);
    }
    if (status == ASTER_OK) {
        status = aster_redis_verify(redis, &state, &error);
    }
    aster_redis_close(redis);
    return status == ASTER_OK ? report(cli, arguments->to, state) : aster_cli_fail(cli, &error);
}

static int apply(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    return visit(cli, arguments, true);
}

static int verify(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    return visit(cli, arguments, false);
}

const struct aster_schema_kind aster_schema_redis = {"redis", print, apply, verify};
