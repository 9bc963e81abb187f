/* A user's program over the core library only: acquire, a fenced write, release, and the stale write that is refused.
 */
#include <stdio.h>
#include <string.h>

#include <aster/aster.h>

static aster_status write_once(void *tx, void *user)
{
    (void)tx;
    *(int *)user += 1;
    return ASTER_OK;
}

static int fail(const char *what, const struct aster_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
    return 1;
}

int main(void)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_serializer *serializer = NULL;
    struct aster_lease *lease = NULL;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_bytes me = aster_text("worker");
    int writes = 0;

    if (strcmp(aster_version(), ASTER_VERSION_TEXT) != 0) {
        fprintf(stderr, "headers are %s, the library is %s\n", ASTER_VERSION_TEXT, aster_version());
        return 1;
    }
    if (aster_memory_open(NULL, &serializer, &error) != ASTER_OK ||
        aster_lease_acquire(serializer, aster_text("catalog"), me, NULL, &lease, NULL, &error) != ASTER_OK) {
        return fail("acquire", &error);
    }
    const struct aster_fence *fence = aster_lease_fence(lease);
    if (fence == NULL || fence->epoch != 1) {
        return fail("fence", &error);
    }
    if (aster_mutate_fenced(serializer, fence, me, write_once, &writes, &verdict, &error) != ASTER_OK ||
        verdict.reason != ASTER_REASON_NONE || writes != 1) {
        return fail("fenced write", &error);
    }
    if (aster_lease_release(lease, 5000, NULL, &error) != ASTER_OK) {
        return fail("release", &error);
    }
    const struct aster_fence late = {aster_text("catalog"), 1, me};
    if (aster_mutate_fenced(serializer, &late, me, write_once, &writes, &verdict, &error) != ASTER_OK ||
        verdict.reason != ASTER_REASON_STALE_EPOCH || writes != 1) {
        return fail("late write", &error);
    }
    aster_lease_destroy(lease);
    aster_serializer_destroy(serializer);
    puts(aster_reason_name(verdict.reason));
    return 0;
}
