/* Act 2: the caller is whoever the handshake authenticated. Everything here is tried by real clients of the grantor,
 * each with its own key. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "cli/demo/grantor/parts.h"

#define RESOURCE "invoice/B-1043"
#define TTL_MS 30000
#define CALL_TIMEOUT_MS 10000

struct check {
    const struct demo_grantor *grantor;
    struct demo_act *act;
    struct demo_expectations *expectations;
    struct aster_serializer *client[DEMO_NODES];
};

struct attempt {
    enum demo_node who;
    enum aster_operation_kind kind;
    int64_t epoch;
    enum demo_node caller; /* whom it says it is */
    enum demo_node holder; /* put: of the fence */
    aster_status status;
    enum aster_reason reason; /* with ASTER_OK */
    const char *what;         /* for the timeline */
    const char *name;
    const char *text; /* what must come of it */
};

static enum demo_lane lane_of(enum demo_node node)
{
    return node == DEMO_NODE_A ? DEMO_LANE_A : node == DEMO_NODE_B ? DEMO_LANE_B : DEMO_LANE_STORE;
}

static enum demo_mark mark_of(const struct attempt *attempt, const struct aster_decision *decision, bool met)
{
    if (attempt->status != ASTER_OK || attempt->reason != ASTER_REASON_NONE) {
        return met ? DEMO_MARK_REJECTED : DEMO_MARK_CORRUPTED;
    }
    return decision->kind == ASTER_OP_ACQUIRE ? DEMO_MARK_GRANTED : DEMO_MARK_WRITTEN;
}

/* Try it, and hold what came of it against what must. */
static void try_once(struct check *check, const struct attempt *attempt)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error refusal = ASTER_ERROR_INIT;
    operation.kind = attempt->kind;
    operation.resource = aster_text(RESOURCE);
    operation.caller = aster_text(check->grantor->id[attempt->caller]);
    operation.epoch = attempt->epoch;
    operation.ttl_ms = attempt->kind == ASTER_OP_ACQUIRE ? TTL_MS : 0;
    if (attempt->kind == ASTER_OP_PUT) {
        operation.holder = aster_text(check->grantor->id[attempt->holder]);
        operation.value = aster_text("paid");
    }
    aster_status status =
        aster_serializer_call(check->client[attempt->who], &operation, CALL_TIMEOUT_MS, &reply, &refusal);
    const struct aster_decision *decision = &reply.decision;
    const char *outcome = status != ASTER_OK                      ? aster_status_name(status)
                          : decision->reason == ASTER_REASON_NONE ? "granted"
                                                                  : aster_reason_name(decision->reason);
    bool met = status == attempt->status && (status != ASTER_OK || decision->reason == attempt->reason);
    aster_demo_act_add(check->act, aster_demo_now_ns(), lane_of(attempt->who), mark_of(attempt, decision, met),
                       decision->epoch, "%s: %s", attempt->what, outcome);
    aster_demo_expect(check->expectations, met, attempt->name, attempt->text, "%s; %.120s", outcome, refusal.message);
    aster_reply_fini(&reply);
}

static void try_everything(struct check *check)
{
    static const struct attempt attempts[] = {
        {DEMO_NODE_B, ASTER_OP_ACQUIRE, 0, DEMO_NODE_B, DEMO_NODE_B, ASTER_OK, ASTER_REASON_NONE, "acquires " RESOURCE,
         "identity.granted", "worker B was granted a lease"},
        {DEMO_NODE_A, ASTER_OP_RENEW, 1, DEMO_NODE_A, DEMO_NODE_A, ASTER_OK, ASTER_REASON_NOT_HOLDER,
         "renews B's lease under its epoch", "identity.renew", "worker A could not renew B's lease"},
        {DEMO_NODE_A, ASTER_OP_RENEW, 1, DEMO_NODE_B, DEMO_NODE_B, ASTER_ERR_INVALID, ASTER_REASON_NONE,
         "renews it in B's name", "identity.name", "nor in B's name: no request has a field for the caller"},
        {DEMO_NODE_A, ASTER_OP_RELEASE, 1, DEMO_NODE_A, DEMO_NODE_A, ASTER_OK, ASTER_REASON_NOT_HOLDER,
         "releases B's lease", "identity.release", "worker A could not release it"},
        {DEMO_NODE_A, ASTER_OP_PUT, 1, DEMO_NODE_A, DEMO_NODE_B, ASTER_OK, ASTER_REASON_NOT_HOLDER,
         "writes under B's fence", "identity.not-a-bearer-token", "B's fence in A's hands was rejected"},
        {DEMO_NODE_A, ASTER_OP_REVOKE, 0, DEMO_NODE_A, DEMO_NODE_A, ASTER_OK, ASTER_REASON_UNAUTHORIZED,
         "revokes B's lease", "identity.revoke", "worker A could not revoke it: it is no operator"},
        {DEMO_NODE_STRANGER, ASTER_OP_INSPECT, 0, DEMO_NODE_STRANGER, DEMO_NODE_STRANGER, ASTER_ERR_UNREACHABLE,
         ASTER_REASON_NONE, "a stranger with a key of its own asks", "identity.stranger",
         "a node that is not listed did not get past the handshake"},
        {DEMO_NODE_B, ASTER_OP_PUT, 1, DEMO_NODE_B, DEMO_NODE_B, ASTER_OK, ASTER_REASON_NONE,
         "writes under its own fence", "identity.undisturbed", "worker B's own write went through all the same"},
        {DEMO_NODE_OPERATOR, ASTER_OP_REVOKE, 0, DEMO_NODE_OPERATOR, DEMO_NODE_OPERATOR, ASTER_OK, ASTER_REASON_NONE,
         "the operator revokes B's lease", "identity.operator", "the operator could revoke it"},
        {DEMO_NODE_B, ASTER_OP_PUT, 1, DEMO_NODE_B, DEMO_NODE_B, ASTER_OK, ASTER_REASON_STALE_EPOCH,
         "writes under its own fence again", "identity.fenced", "and from then on B's fence was rejected, too"},
    };
    for (size_t i = 0; i < sizeof attempts / sizeof attempts[0]; i++) {
        try_once(check, &attempts[i]);
    }
}

struct audit {
    const struct demo_grantor *grantor;
    bool rejected;
    bool unauthorized;
    bool revoked;
};

static bool note_event(const struct aster_event *event, void *user)
{
    struct audit *audit = user;
    bool by_a = aster_bytes_equal(event->actor, aster_text(audit->grantor->id[DEMO_NODE_A]));
    bool by_operator = aster_bytes_equal(event->actor, aster_text(audit->grantor->id[DEMO_NODE_OPERATOR]));
    audit->rejected |= event->kind == ASTER_EVENT_FENCE_REJECTED && event->reason == ASTER_REASON_NOT_HOLDER && by_a;
    audit->unauthorized |= event->kind == ASTER_EVENT_UNAUTHORIZED && by_a;
    audit->revoked |= event->kind == ASTER_EVENT_REVOKED && event->epoch == 2 && by_operator;
    return true;
}

static aster_status read_audit(struct check *check, struct aster_error *error)
{
    struct audit audit = {.grantor = check->grantor};
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.resource = aster_text(RESOURCE);
    aster_status status = aster_history(check->client[DEMO_NODE_OPERATOR], &query, note_event, &audit, error);
    aster_demo_expect(check->expectations, audit.rejected && audit.unauthorized && audit.revoked, "identity.audited",
                      "the grantor's history names A for both refusals and the operator for the revoke",
                      "rejection %d, unauthorized %d, revoke %d", audit.rejected, audit.unauthorized, audit.revoked);
    return status;
}

aster_status aster_demo_identity_check(const struct demo_stage *stage, struct demo_act *act, struct aster_error *error)
{
    aster_demo_act_init(act, "Act 2: nobody acts as anybody else",
                        "Four keys: two workers, an operator, and one that the grantor does not know.", false);
    act->third_lane = "operator";
    struct check check = {.grantor = stage->grantor, .act = act, .expectations = stage->expectations};
    aster_status status = ASTER_OK;
    for (int i = 0; i < DEMO_NODES && status == ASTER_OK; i++) {
        status = aster_demo_grantor_connect(stage->grantor, (enum demo_node)i, &check.client[i], error);
    }
    if (status == ASTER_OK) {
        try_everything(&check);
        status = read_audit(&check, error);
    }
    for (int i = 0; i < DEMO_NODES; i++) {
        aster_serializer_destroy(check.client[i]);
    }
    return status;
}
