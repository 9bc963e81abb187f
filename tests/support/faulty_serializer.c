#include "support/faulty_serializer.h"

#include <stdlib.h>

#define KINDS 9

/* One request on its way. */
struct passage {
    struct aster_request request; /* what the inner serializer sees */
    struct aster_request *outer;  /* NULL = answered, or not the one that is answered */
    struct faulty_serializer *faulty;
    struct fault fault;
    char names[ASTER_RESOURCE_MAX + ASTER_IDENTITY_MAX]; /* of one that outlives its answer */
    int64_t due_ns;                                      /* INT64_MAX = not by time */
    bool delivered;
    bool released; /* no longer hangs */
    bool answered; /* by the inner one; the reply waits for its time */
    aster_status status;
    struct aster_reply reply;
    struct aster_error error;
    struct passage *next;
};

struct faulty_serializer {
    struct aster_serializer_ops ops;
    struct aster_serializer *serializer;
    struct aster_serializer *inner;
    struct fake_clock *clock;
    fault_script script;
    void *user;
    fault_observer observer;
    void *observer_user;
    struct fault always;
    enum aster_operation_kind always_kind;
    struct passage *passages;
    int counts[KINDS];
    int64_t last_ns[KINDS];
    int asked_back;
    bool closed;
};

static void link_passage(struct passage *passage)
{
    passage->next = passage->faulty->passages;
    passage->faulty->passages = passage;
}

static void unlink_passage(struct passage *passage)
{
    struct passage **at = &passage->faulty->passages;
    while (*at != NULL && *at != passage) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = passage->next;
    }
}

static void answer(struct passage *passage, aster_status status)
{
    unlink_passage(passage);
    struct aster_request *outer = passage->outer;
    if (outer != NULL) {
        outer->complete(outer, status, status == ASTER_OK ? &passage->reply.decision : NULL,
                        status != ASTER_OK && passage->error.status == status ? &passage->error : NULL);
    }
    aster_reply_fini(&passage->reply);
    free(passage);
}

static void on_inner(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct passage *passage = request->user;
    struct faulty_serializer *faulty = passage->faulty;
    if (status == ASTER_OK && faulty->observer != NULL) {
        faulty->observer(&request->operation, decision, faulty->observer_user);
    }
    passage->answered = true;
    passage->status = status;
    if (status == ASTER_OK && aster_reply_set(&passage->reply, decision) != ASTER_OK) {
        abort();
    }
    if (error != NULL) {
        passage->error = *error;
    }
    if (passage->fault.kind == FAULT_LOSE_REPLY) {
        answer(passage, ASTER_ERR_INDETERMINATE);
    } else if (passage->fault.kind == FAULT_DELAY_REPLY) {
        passage->due_ns = fake_clock_now_ns(faulty->clock) + passage->fault.delay_ms * 1000000;
    } else {
        answer(passage, status);
    }
}

static void deliver(struct passage *passage)
{
    passage->delivered = true;
    passage->due_ns = INT64_MAX;
    aster_serializer_submit(passage->faulty->inner, &passage->request);
}

static struct fault choose(struct faulty_serializer *faulty, const struct aster_operation *operation)
{
    if (faulty->script != NULL) {
        return faulty->script(operation, faulty->user);
    }
    bool concerned = faulty->always_kind == (enum aster_operation_kind)0 || faulty->always_kind == operation->kind;
    return concerned ? faulty->always : (struct fault){FAULT_NONE, 0, 0};
}

static void deny_expired(struct passage *passage)
{
    struct aster_decision decision = {.struct_size = sizeof decision,
                                      .kind = passage->outer->operation.kind,
                                      .outcome = ASTER_DENIED,
                                      .reason = ASTER_REASON_EXPIRED};
    decision.snapshot.resource = passage->outer->operation.resource;
    decision.snapshot.epoch = decision.epoch = passage->outer->operation.epoch;
    decision.snapshot.held = true;
    decision.snapshot.holder = passage->outer->operation.caller;
    if (aster_reply_set(&passage->reply, &decision) != ASTER_OK) {
        abort();
    }
    answer(passage, ASTER_OK);
}

static struct passage *new_passage(struct faulty_serializer *faulty, struct aster_request *outer)
{
    struct passage *passage = calloc(1, sizeof *passage);
    if (passage == NULL) {
        abort();
    }
    passage->outer = outer;
    passage->faulty = faulty;
    passage->request = *outer;
    passage->request.complete = on_inner;
    passage->request.user = passage;
    passage->due_ns = INT64_MAX;
    if (aster_serializer_clock(faulty->inner)->self != fake_clock_clock(faulty->clock)->self) {
        passage->request.deadline_ns = 0;
    }
    link_passage(passage);
    return passage;
}

/* A copy that arrives when its sender has forgotten it. */
static void send_late(struct faulty_serializer *faulty, struct aster_request *outer, int64_t delay_ms)
{
    struct passage *passage = new_passage(faulty, outer);
    struct aster_operation *operation = &passage->request.operation;
    passage->outer = NULL;
    passage->request.deadline_ns = 0;
    memcpy(passage->names, operation->resource.data, operation->resource.size);
    memcpy(passage->names + ASTER_RESOURCE_MAX, operation->caller.data, operation->caller.size);
    operation->resource.data = passage->names;
    operation->caller.data = passage->names + ASTER_RESOURCE_MAX;
    passage->due_ns = fake_clock_now_ns(faulty->clock) + delay_ms * 1000000;
}

static void submit(void *self, struct aster_request *outer)
{
    struct faulty_serializer *faulty = self;
    int kind = (int)outer->operation.kind;
    faulty->counts[0]++;
    faulty->counts[kind]++;
    faulty->last_ns[0] = faulty->last_ns[kind] = fake_clock_now_ns(faulty->clock);
    if (faulty->closed) {
        outer->complete(outer, ASTER_ERR_CLOSED, NULL, NULL);
        return;
    }
    struct fault fault = choose(faulty, &outer->operation);
    if (fault.kind == FAULT_LATE || fault.kind == FAULT_TWICE) {
        send_late(faulty, outer, fault.delay_ms);
    }
    struct passage *passage = new_passage(faulty, outer);
    passage->fault = fault;
    switch (passage->fault.kind) {
    case FAULT_FAIL:
        answer(passage, passage->fault.status);
        break;
    case FAULT_DENY_EXPIRED:
        deny_expired(passage);
        break;
    case FAULT_LATE:
        answer(passage, ASTER_ERR_INDETERMINATE);
        break;
    case FAULT_BLACK_HOLE:
    case FAULT_HANG:
        break;
    case FAULT_DELAY_REQUEST:
        passage->due_ns = fake_clock_now_ns(faulty->clock) + passage->fault.delay_ms * 1000000;
        break;
    default:
        deliver(passage);
        break;
    }
}

static void cancel(void *self, struct aster_request *outer)
{
    struct faulty_serializer *faulty = self;
    faulty->asked_back++;
    struct passage *passage = faulty->passages;
    while (passage != NULL && passage->outer != outer) {
        passage = passage->next;
    }
    if (passage == NULL || passage->fault.kind == FAULT_HANG) {
        return;
    }
    if (!passage->delivered) {
        answer(passage, ASTER_ERR_CANCELLED);
    } else if (!passage->answered) {
        aster_serializer_cancel(faulty->inner, &passage->request);
    }
}

static void close_serializer(void *self)
{
    struct faulty_serializer *faulty = self;
    faulty->closed = true;
}

static aster_status wait_idle(void *self, int64_t timeout_ms)
{
    (void)timeout_ms;
    struct faulty_serializer *faulty = self;
    return faulty->passages == NULL ? ASTER_OK : ASTER_ERR_TIMEOUT;
}

static void destroy(void *self)
{
    struct faulty_serializer *faulty = self;
    fake_clock_clock(faulty->clock)->ops->unsubscribe(fake_clock_clock(faulty->clock)->self, faulty);
    while (faulty->passages != NULL) {
        answer(faulty->passages, ASTER_ERR_CLOSED);
    }
    free(faulty);
}

static struct passage *due(const struct faulty_serializer *faulty, int64_t now_ns)
{
    struct passage *earliest = NULL;
    for (struct passage *at = faulty->passages; at != NULL; at = at->next) {
        if (at->due_ns <= now_ns && (earliest == NULL || at->due_ns < earliest->due_ns)) {
            earliest = at;
        }
    }
    return earliest;
}

static int64_t wake(void *user)
{
    struct faulty_serializer *faulty = user;
    struct passage *passage;
    while ((passage = due(faulty, fake_clock_now_ns(faulty->clock))) != NULL) {
        if (passage->delivered) {
            answer(passage, passage->status);
        } else {
            deliver(passage);
        }
    }
    int64_t next_ns = INT64_MAX;
    for (passage = faulty->passages; passage != NULL; passage = passage->next) {
        next_ns = passage->due_ns < next_ns ? passage->due_ns : next_ns;
    }
    return next_ns;
}

struct faulty_serializer *faulty_serializer_create(struct aster_serializer *inner, struct fake_clock *clock,
                                                   bool queues)
{
    struct faulty_serializer *faulty = calloc(1, sizeof *faulty);
    if (faulty == NULL) {
        abort();
    }
    faulty->inner = inner;
    faulty->clock = clock;
    faulty->ops = (struct aster_serializer_ops){.struct_size = sizeof faulty->ops,
                                                .name = "faulty",
                                                .traits = queues ? aster_serializer_traits_of(inner) : 0,
                                                .submit = submit,
                                                .cancel = cancel,
                                                .close = close_serializer,
                                                .wait = wait_idle,
                                                .destroy = destroy};
    if (aster_serializer_create(&faulty->ops, faulty, fake_clock_clock(clock), &faulty->serializer, NULL) != ASTER_OK) {
        abort();
    }
    fake_clock_clock(clock)->ops->subscribe(fake_clock_clock(clock)->self, wake, faulty);
    return faulty;
}

void faulty_serializer_destroy(struct faulty_serializer *faulty)
{
    aster_serializer_destroy(faulty->serializer);
}

struct aster_serializer *faulty_serializer_serializer(struct faulty_serializer *faulty)
{
    return faulty->serializer;
}

void faulty_serializer_script(struct faulty_serializer *faulty, fault_script script, void *user)
{
    faulty->script = script;
    faulty->user = user;
}

void faulty_serializer_always(struct faulty_serializer *faulty, enum aster_operation_kind kind, struct fault fault)
{
    faulty->script = NULL;
    faulty->always_kind = kind;
    faulty->always = fault;
}

void faulty_serializer_observe(struct faulty_serializer *faulty, fault_observer observer, void *user)
{
    faulty->observer = observer;
    faulty->observer_user = user;
}

/* An answer makes its receiver submit again and ask others back, so the list is looked through anew after each. */
void faulty_serializer_unhang(struct faulty_serializer *faulty)
{
    for (struct passage *at = faulty->passages; at != NULL; at = at->next) {
        at->released = at->fault.kind == FAULT_HANG;
    }
    struct passage *passage = faulty->passages;
    while (passage != NULL) {
        if (passage->released) {
            answer(passage, ASTER_ERR_INDETERMINATE);
            passage = faulty->passages;
        } else {
            passage = passage->next;
        }
    }
}

int faulty_serializer_count(const struct faulty_serializer *faulty, enum aster_operation_kind kind)
{
    return faulty->counts[(int)kind];
}

int64_t faulty_serializer_last_ns(const struct faulty_serializer *faulty, enum aster_operation_kind kind)
{
    return faulty->last_ns[(int)kind];
}

int faulty_serializer_asked_back(const struct faulty_serializer *faulty)
{
    return faulty->asked_back;
}
