/* The catalog: two writers, one fence. A writes and releases, B takes its place, and what A still carries in its pocket
 * is refused before its write runs. Exits non-zero if any of it does not happen. */
#include <stdio.h>
#include <string.h>

#include <aster/lease.h>
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

/* NULL when it is not granted. */
static struct aster_lease *acquire(struct aster_serializer *serializer, const char *holder)
{
    struct aster_lease *lease = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_lease_acquire(serializer, aster_text("catalog"), aster_text(holder), NULL, &lease, NULL, &error) !=
        ASTER_OK) {
        fprintf(stderr, "catalog: %s\n", error.message);
    }
    return lease;
}

/* A copy of the fence, as a worker that was paused would still have it. Its names live as long as the lease. */
static struct aster_fence fence_of(const struct aster_lease *lease)
{
    const struct aster_fence *fence = lease != NULL ? aster_lease_fence(lease) : NULL;
    return fence != NULL ? *fence : (struct aster_fence){aster_text("catalog"), 0, aster_text("nobody")};
}

static int release(struct aster_lease *lease)
{
    return lease != NULL && aster_lease_release(lease, 5000, NULL, NULL) == ASTER_OK &&
           aster_lease_fence(lease) == NULL;
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
    if (aster_mutate_fenced(serializer, fence, aster_text(writer), apply_change, &change, &verdict, &error) !=
        ASTER_OK) {
        fprintf(stderr, "catalog: %s\n", error.message);
        return ASTER_REASON_NO_FENCE;
    }
    return verdict.reason;
}

static void play(struct aster_serializer *serializer)
{
    struct catalog catalog = {"empty", 0};
    struct aster_lease *lease_a = acquire(serializer, "writer-a");
    struct aster_fence a = fence_of(lease_a);
    expect(a.epoch == 1, "A is granted the catalog under epoch 1");
    expect(write_catalog(serializer, &a, "writer-a", &catalog, "by A") == ASTER_REASON_NONE &&
               strcmp(catalog.text, "by A") == 0,
           "A writes under its fence");
    expect(release(lease_a), "A releases, and its lease supplies no fence any more");
    struct aster_lease *lease_b = acquire(serializer, "writer-b");
    struct aster_fence b = fence_of(lease_b);
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
    expect(release(lease_b), "B releases");
    aster_lease_destroy(lease_a);
    aster_lease_destroy(lease_b);
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
