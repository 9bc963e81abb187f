#include "cli/events.h"

#include <inttypes.h>

#include "cli/output.h"
#include "cli/store.h"
#include "platform/files.h"

/* One indexed look-up every so often costs a process next to nothing. */
#define POLL_NS INT64_C(200000000)

struct printing {
    bool json;
    bool quiet;
    bool follow;
    int64_t last_revision;
    int failed;
};

static void print_bytes(const char *before, struct aster_bytes bytes)
{
    printf("%s%.*s", before, (int)bytes.size, (const char *)bytes.data);
}

static void print_line(const struct aster_event *event)
{
    char at[ASTER_TEXT_MAX];
    /* What has no fixed width comes last. */
    printf("%s  %-14s  epoch %-6" PRId64 "  ", aster_text_instant(event->unix_ms, at), aster_event_name(event->kind),
           event->epoch);
    print_bytes("", event->resource);
    if (event->actor.size > 0) {
        print_bytes("  by ", event->actor);
    }
    if (event->previous.size > 0) {
        print_bytes("  from ", event->previous);
    }
    if (event->reason != ASTER_REASON_NONE) {
        printf("  %s", aster_reason_name(event->reason));
    }
    if (event->kind == ASTER_EVENT_FENCE_REJECTED) {
        printf("  carried epoch %" PRId64, event->carried_epoch);
    }
    putchar('\n');
}

static bool visit(const struct aster_event *event, void *user)
{
    struct printing *printing = user;
    printing->last_revision = event->revision;
    if (printing->quiet) {
        return true;
    }
    if (printing->json) {
        printing->failed = aster_json_print(aster_json_event(event), JSON_COMPACT, stdout);
    } else {
        print_line(event);
    }
    if (printing->follow && fflush(stdout) != 0) { /* or a reader would see the half of a line */
        printing->failed = ASTER_EXIT_IO;
    }
    return printing->failed == ASTER_EXIT_OK;
}

/* Where the history ends now: a reader that follows starts behind it. */
static aster_status skip_to_end(struct aster_serializer *serializer, struct printing *printing,
                                struct aster_error *error)
{
    struct aster_history_query newest = ASTER_HISTORY_QUERY_INIT;
    newest.limit = 1;
    printing->quiet = true;
    aster_status status = aster_history(serializer, &newest, visit, printing, error);
    printing->quiet = false;
    return status;
}

/* Whoever follows outlasts a store that is locked, restarted or out of reach. */
static bool passes(aster_status status)
{
    return status == ASTER_ERR_BUSY || status == ASTER_ERR_UNREACHABLE || status == ASTER_ERR_TIMEOUT;
}

static int print_all(const struct aster_cli *cli, struct aster_serializer *serializer,
                     struct aster_history_query *query, bool follow, bool only_new)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct printing printing = {cli->json, false, follow, query->after_revision, ASTER_EXIT_OK};
    if (only_new && skip_to_end(serializer, &printing, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    for (;;) {
        query->after_revision = printing.last_revision;
        aster_status status = aster_history(serializer, query, visit, &printing, &error);
        if (status != ASTER_OK && !(follow && passes(status))) {
            return aster_cli_fail(cli, &error);
        }
        if (fflush(stdout) != 0 || printing.failed != ASTER_EXIT_OK) {
            return ASTER_EXIT_IO;
        }
        if (!follow) {
            return ASTER_EXIT_OK;
        }
        query->limit = 0;
        aster_pause_ns(POLL_NS);
    }
}

int aster_events_print(const struct aster_cli *cli, const char *resource, int64_t after_revision, int64_t limit,
                       bool follow)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.resource = aster_text(resource);
    query.after_revision = after_revision > 0 ? after_revision : 0;
    query.limit = (size_t)limit;
    if (resource != NULL && aster_resource_check(query.resource, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int code = aster_store_open(cli, ASTER_STORE_MUST_EXIST, NULL, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    code = print_all(cli, serializer, &query, follow, after_revision < 0);
    aster_serializer_destroy(serializer);
    return code;
}
