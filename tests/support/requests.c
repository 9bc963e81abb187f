#include "support/requests.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"

static struct aster_operation op(enum aster_operation_kind kind, const char *resource, const char *caller)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text(caller);
    return operation;
}

struct aster_operation op_acquire(const char *resource, const char *candidate, int64_t ttl_ms)
{
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, resource, candidate);
    operation.ttl_ms = ttl_ms;
    return operation;
}

struct aster_operation op_renew(const char *resource, const char *holder, int64_t epoch)
{
    struct aster_operation operation = op(ASTER_OP_RENEW, resource, holder);
    operation.epoch = epoch;
    return operation;
}

struct aster_operation op_release(const char *resource, const char *holder, int64_t epoch)
{
    struct aster_operation operation = op(ASTER_OP_RELEASE, resource, holder);
    operation.epoch = epoch;
    return operation;
}

struct aster_operation op_revoke(const char *resource, const char *authority)
{
    return op(ASTER_OP_REVOKE, resource, authority);
}

struct aster_operation op_forget(const char *resource, const char *authority)
{
    return op(ASTER_OP_FORGET, resource, authority);
}

struct aster_operation op_inspect(const char *resource)
{
    return op(ASTER_OP_INSPECT, resource, NULL);
}

static void keep_answer(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                        const struct aster_error *error)
{
    struct asked *asked = request->user;
    asked->answers++;
    asked->status = status;
    if (decision != NULL && aster_reply_set(&asked->reply, decision) != ASTER_OK) {
        abort();
    }
    if (error != NULL) {
        memcpy(asked->message, error->message, sizeof asked->message);
    }
}

void ask(struct aster_serializer *serializer, struct asked *asked, struct aster_operation operation, int64_t wait_ms)
{
    memset(asked, 0, sizeof *asked);
    asked->request = (struct aster_request)ASTER_REQUEST_INIT;
    asked->reply = (struct aster_reply)ASTER_REPLY_INIT;
    asked->request.operation = operation;
    asked->request.complete = keep_answer;
    asked->request.user = asked;
    if (wait_ms > 0) {
        int64_t now_ns = aster_clock_now_ns(aster_serializer_clock(serializer));
        asked->request.wait_until_ns = aster_add_saturated(now_ns, aster_ms_to_ns(wait_ms));
    }
    aster_serializer_submit(serializer, &asked->request);
}

void asked_fini(struct asked *asked)
{
    aster_reply_fini(&asked->reply);
}

bool asked_granted(const struct asked *asked)
{
    return asked->answers == 1 && asked->status == ASTER_OK && asked->reply.decision.outcome == ASTER_GRANTED;
}

enum aster_reason decide_now(struct aster_serializer *serializer, struct aster_operation operation, int64_t *epoch)
{
    struct asked asked;
    ask(serializer, &asked, operation, 0);
    if (asked.answers != 1 || asked.status != ASTER_OK) {
        fprintf(stderr, "%s: %d answers, %s %s\n", aster_operation_name(operation.kind), asked.answers,
                aster_status_name(asked.status), asked.message);
        abort();
    }
    enum aster_reason reason = asked.reply.decision.reason;
    if (epoch != NULL) {
        *epoch = asked.reply.decision.epoch;
    }
    asked_fini(&asked);
    return reason;
}

int64_t acquire_now(struct aster_serializer *serializer, const char *resource, const char *candidate)
{
    int64_t epoch = 0;
    if (decide_now(serializer, op_acquire(resource, candidate, REQUEST_TTL_MS), &epoch) != ASTER_REASON_NONE) {
        abort();
    }
    return epoch;
}
