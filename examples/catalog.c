/* The catalog: two writers, one fence. A writes and releases, B takes its place, and what A still carries in its pocket is
 * refused before its write runs. Exits non-zero if any of it does not happen. */
#include <stdio.h>
#include <string.h>

#include <aster/memory.h>

struct catalog {
    char text[64];
    int writes; /* how often a write ran at all */
};

struct change {
    struct catalog *catalog;
    const char *text;
};

/* The protected write. The serializer runs it only under the current fence, and nobody is granted meanwhile. */
static aster_status apply_change(void *tx, void *user)
{
    const struct change *change = user;
    (void)tx;
    change->catalog->writes++;
    snprintf(change->catalog->text, sizeof change->catalog->text, "%s", change->text);
    return ASTER_OK;
}

static struct aster_operation about_catalog(enum aster_operation_kind kind, const char *caller)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text("catalog");
    operation.caller = aster_text(caller);
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    return operation;
}

/* The fence of `holder`, or epoch 0 when it was not granted. */
static struct aster_fence acquire(struct aster_serializer *serializer, const char *holder)
{
    struct aster_fence fence = {aster_text("catalog"), 0, aster_text(holder)};
    struct aster_reply reply = ASTER_REPLY_INIT;
    const struct aster_operation operation = about_catalog(ASTER_OP_ACQUIRE, holder);
    if (aster_serializer_call(serializer, &operation, 0, &reply, NULL) == ASTER_OK &&
        reply.decision.outcome == ASTER_GRANTED) {
        fence.epoch = reply.decision.epoch;
    }
    aster_reply_fini(&reply);
    return fence;
}

static int release(struct aster_serializer *serializer, const struct aster_fence *fence, const char *holder)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_operation operation = about_catalog(ASTER_OP_RELEASE, holder);
    operation.epoch = fence->epoch;
    int released = aster_serializer_call(serializer, &operation, 0, &reply, NULL) == ASTER_OK &&
                   reply.decision.outcome == ASTER_GRANTED;
    aster_reply_fini(&reply);
    return released;
}

static int failures;

static void expect(int happened, const char *what)
{
    printf("%-4s %s\n", happened ? "ok" : "FAIL", what);
    failures += !happened;
}

/* Write as `writer` under `fence`; the reason why it was refused, NONE when it was written. */
static enum aster_reason write_catalog(struct aster_serializer *serializer, const struct aster_fence *fence,
                                       const char *writer, struct catalog *catalog, const char *text)
{
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct change change = {catalog, text};
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_mutate_fenced(serializer, fence, aster_text(writer), apply_change, &change, &verdict, &error) != ASTER_OK) {
        fprintf(stderr, "catalog: %s\n", error.message);
        return ASTER_REASON_NO_FENCE;
    }
    return verdict.reason;
}

static void play(struct aster_serializer *serializer)
{
    struct catalog catalog = {"empty", 0};
    struct aster_fence a = acquire(serializer, "writer-a");
    expect(a.epoch == 1, "A is granted the catalog under epoch 1");
    expect(write_catalog(serializer, &a, "writer-a", &catalog, "by A") == ASTER_REASON_NONE &&
               strcmp(catalog.text, "by A") == 0,
           "A writes under its fence");
    expect(release(serializer, &a, "writer-a"), "A releases");
    struct aster_fence b = acquire(serializer, "writer-b");
    expect(b.epoch == 3, "B is granted the catalog under epoch 3");
    expect(write_catalog(serializer, &a, "writer-a", &catalog, "late, by A") == ASTER_REASON_STALE_EPOCH &&
               catalog.writes == 1,
           "A's saved fence is refused before its write runs");
    expect(write_catalog(serializer, &b, "writer-a", &catalog, "by A, with B's fence") == ASTER_REASON_NOT_HOLDER &&
               catalog.writes == 1,
           "B's fence in A's hands is refused: a fence is no bearer token");
    expect(write_catalog(serializer, &b, "writer-b", &catalog, "by B") == ASTER_REASON_NONE && catalog.writes == 2 &&
               strcmp(catalog.text, "by B") == 0,
           "B writes under its fence");
    expect(release(serializer, &b, "writer-b"), "B releases");
}

int main(void)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_memory_open(NULL, &serializer, &error) != ASTER_OK) {
        fprintf(stderr, "catalog: %s\n", error.message);
        return 1;
    }
    play(serializer);
    aster_serializer_destroy(serializer);
    return failures == 0 ? 0 : 1;
}
