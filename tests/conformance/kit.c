#include "kit.h"

#include <stdio.h>
#include <time.h>

#define CALL_TIMEOUT_MS 20000

void aster_conformance_fail(struct scenario *s, const char *file, int line, const char *expected)
{
    const char *slash = strrchr(file, '/');
    char answer[256];
    aster_decision_describe(&s->reply.decision, answer, sizeof answer);
    s->failed = true;
    snprintf(s->why, sizeof s->why, "%.40s:%d: expected %.120s; the last answer was %s %.200s",
             slash != NULL ? slash + 1 : file, line, expected, aster_status_name(s->status),
             s->status == ASTER_OK ? answer : s->error.message);
}

struct aster_operation aster_conformance_op(enum aster_operation_kind kind, const char *resource, const char *caller,
                                            int64_t epoch)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text(caller);
    operation.epoch = epoch;
    return operation;
}

static void look_at_clock(struct scenario *s)
{
    int64_t now_ns = aster_clock_now_ns(aster_clock_system());
    if (s->looked_at_ns != 0) {
        s->unasked_ns += now_ns - s->looked_at_ns - s->slept_ns;
    }
    s->looked_at_ns = now_ns;
    s->slept_ns = 0;
}

enum aster_reason aster_conformance_decide(struct scenario *s, const struct aster_operation *operation)
{
    s->error.message[0] = '\0';
    look_at_clock(s);
    s->status = aster_serializer_call(s->serializer, operation, CALL_TIMEOUT_MS, &s->reply, &s->error);
    look_at_clock(s);
    return s->status == ASTER_OK ? s->reply.decision.reason : FAILED;
}

enum aster_reason aster_conformance_acquire(struct scenario *s, const char *resource, const char *candidate)
{
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, resource, candidate, 0);
    operation.ttl_ms = s->ttl_ms;
    return decide(s, &operation);
}

enum aster_reason aster_conformance_renew(struct scenario *s, const char *resource, const char *holder, int64_t epoch)
{
    const struct aster_operation operation = op(ASTER_OP_RENEW, resource, holder, epoch);
    return decide(s, &operation);
}

enum aster_reason aster_conformance_release(struct scenario *s, const char *resource, const char *holder, int64_t epoch)
{
    const struct aster_operation operation = op(ASTER_OP_RELEASE, resource, holder, epoch);
    return decide(s, &operation);
}

enum aster_reason aster_conformance_revoke(struct scenario *s, const char *resource)
{
    const struct aster_operation operation = op(ASTER_OP_REVOKE, resource, "operator", 0);
    return decide(s, &operation);
}

enum aster_reason aster_conformance_forget(struct scenario *s, const char *resource)
{
    const struct aster_operation operation = op(ASTER_OP_FORGET, resource, "operator", 0);
    return decide(s, &operation);
}

enum aster_reason aster_conformance_put(struct scenario *s, const char *resource, const char *writer, int64_t epoch,
                                        int64_t revision, const char *value)
{
    struct aster_operation operation = op(ASTER_OP_PUT, resource, writer, epoch);
    operation.holder = aster_text(writer);
    operation.value_revision = revision;
    operation.value = aster_text(value);
    return decide(s, &operation);
}

const struct aster_snapshot *aster_conformance_look(struct scenario *s, const char *resource)
{
    const struct aster_operation operation = op(ASTER_OP_INSPECT, resource, NULL, 0);
    return decide(s, &operation) == ASTER_REASON_NONE ? &s->reply.decision.snapshot : NULL;
}

void aster_conformance_pass_time(struct scenario *s, int64_t ms)
{
    if (!s->subject->real_time) {
        aster_conformance_clock_advance(&s->clock, ms * 1000000);
        return;
    }
    s->slept_ns += ms * 1000000;
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static aster_status count_run(void *tx, void *user)
{
    (void)tx;
    int *runs = user;
    (*runs)++;
    return ASTER_OK;
}

enum aster_reason aster_conformance_write(struct scenario *s, const char *resource, int64_t epoch, const char *holder,
                                          const char *writer, int *runs)
{
    const struct aster_fence fence = {aster_text(resource), epoch, aster_text(holder)};
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    s->error.message[0] = '\0';
    s->status = aster_mutate_fenced(s->serializer, &fence, aster_text(writer), count_run, runs, &verdict, &s->error);
    return s->status == ASTER_OK ? verdict.reason : FAILED;
}
