/* A user's program that runs the conformance suite over a serializer, here the memory one. */
#include <stdio.h>

#include <aster/aster.h>
#include <aster/sys/conformance.h>

static aster_status open_memory(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                                struct aster_error *error)
{
    (void)user;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.clock = clock;
    return aster_memory_open(&options, serializer, error);
}

int main(void)
{
    struct aster_conformance_subject subject = {sizeof subject, "memory", open_memory, NULL, false, NULL};
    struct aster_conformance_result result = {0, 0, 0};
    aster_status status = aster_conformance_run(&subject, stdout, &result);
    printf("%d passed, %d failed\n", result.passed, result.failed);
    return status == ASTER_OK && result.passed > 0 ? 0 : 1;
}
