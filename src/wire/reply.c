#include "wire/reply.h"

#include "aster/lease/v1/grantor.pb-c.h"
#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"

#define CASE(name) ASTER__LEASE__V1__REPLY__RESULT_##name

static void fill_snapshot(const struct aster_snapshot *snapshot, bool with_value, Aster__Lease__V1__Snapshot *message)
{
    aster__lease__v1__snapshot__init(message);
    message->resource = aster_to_binary(snapshot->resource);
    message->epoch = snapshot->epoch;
    message->held = snapshot->held;
    message->holder = aster_to_binary(snapshot->holder);
    message->ttl_ms = snapshot->ttl_ms;
    message->remaining_ns = snapshot->remaining_ns;
    message->since_unix_ms = snapshot->since_unix_ms;
    message->lease_revision = snapshot->lease_revision;
    if (with_value) {
        message->value = aster_to_binary(snapshot->value);
    }
    message->value_revision = snapshot->value_revision;
    message->last_holder = aster_to_binary(snapshot->last_holder);
    message->last_epoch_held = snapshot->last_epoch_held;
}

static void fill_decision(const struct aster_decision *decision, Aster__Lease__V1__Decision *message,
                          Aster__Lease__V1__Snapshot *snapshot)
{
    bool granted = decision->outcome == ASTER_GRANTED;
    aster__lease__v1__decision__init(message);
    message->kind = (Aster__Lease__V1__Kind)decision->kind;
    message->granted = granted;
    message->reason = (Aster__Lease__V1__Reason)decision->reason;
    message->replayed = decision->replayed;
    message->takeover = decision->takeover;
    message->epoch = decision->epoch;
    message->carried_epoch = decision->carried_epoch;
    fill_snapshot(&decision->snapshot, !(granted && decision->kind == ASTER_OP_RENEW), snapshot);
    message->snapshot = snapshot;
}

static void fill_error(aster_status status, struct aster_bytes text, Aster__Lease__V1__Error *message)
{
    aster__lease__v1__error__init(message);
    message->status = (Aster__Lease__V1__Status)-status;
    message->message = aster_to_binary(text);
}

/* Everything one result of a batch may need; only one of them is used. */
struct renewed_message {
    Aster__Lease__V1__Renewed renewed;
    union {
        Aster__Lease__V1__Confirmed confirmed;
        Aster__Lease__V1__Error error;
        struct {
            Aster__Lease__V1__Decision decision;
            Aster__Lease__V1__Snapshot snapshot;
        } denial;
    };
};

static void fill_renewed(const struct aster_renewed *result, struct renewed_message *message)
{
    aster__lease__v1__renewed__init(&message->renewed);
    if (result->status != ASTER_OK) {
        fill_error(result->status, result->message, &message->error);
        message->renewed.result_case = ASTER__LEASE__V1__RENEWED__RESULT_ERROR;
        message->renewed.error = &message->error;
    } else if (result->decision.outcome == ASTER_GRANTED) {
        aster__lease__v1__confirmed__init(&message->confirmed);
        message->confirmed.epoch = result->decision.epoch;
        message->confirmed.lease_revision = result->decision.snapshot.lease_revision;
        message->confirmed.remaining_ns = result->decision.snapshot.remaining_ns;
        message->renewed.result_case = ASTER__LEASE__V1__RENEWED__RESULT_CONFIRMED;
        message->renewed.confirmed = &message->confirmed;
    } else {
        fill_decision(&result->decision, &message->denial.decision, &message->denial.snapshot);
        message->renewed.result_case = ASTER__LEASE__V1__RENEWED__RESULT_DECISION;
        message->renewed.decision = &message->denial.decision;
    }
}

struct output {
    struct aster_scratch *scratch;
    void *data;
    size_t size;
    size_t *length;
};

static aster_status pack(const Aster__Lease__V1__Reply *reply, const struct output *output, struct aster_error *error)
{
    return aster_message_pack(&reply->base, output->data, output->size, output->length, error);
}

/* An array of `count` messages of `size` bytes and the array of pointers to them that protobuf-c wants. */
static void *take_messages(struct aster_scratch *scratch, size_t count, size_t size, void ***pointers)
{
    unsigned char *messages = aster_scratch_take(scratch, count * size);
    *pointers = aster_scratch_take(scratch, count * sizeof **pointers);
    for (size_t i = 0; messages != NULL && *pointers != NULL && i < count; i++) {
        (*pointers)[i] = messages + i * size;
    }
    return *pointers != NULL ? messages : NULL;
}

static aster_status encode_renewed(const struct aster_answer *answer, Aster__Lease__V1__Reply *reply,
                                   const struct output *output, struct aster_error *error)
{
    void **pointers;
    size_t count = answer->renewed.count;
    struct renewed_message *messages = take_messages(output->scratch, count, sizeof *messages, &pointers);
    if (messages == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < count; i++) {
        fill_renewed(&answer->renewed.results[i], &messages[i]);
    }
    Aster__Lease__V1__RenewedMany many = ASTER__LEASE__V1__RENEWED_MANY__INIT;
    many.n_results = count;
    many.results = (Aster__Lease__V1__Renewed **)pointers; /* `renewed` is the first member */
    reply->result_case = CASE(RENEWED_MANY);
    reply->renewed_many = &many;
    return pack(reply, output, error);
}

static aster_status encode_rows(const struct aster_answer *answer, Aster__Lease__V1__Reply *reply,
                                const struct output *output, struct aster_error *error)
{
    void **pointers;
    size_t count = answer->rows.count;
    Aster__Lease__V1__Snapshot *messages = take_messages(output->scratch, count, sizeof *messages, &pointers);
    if (messages == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < count; i++) {
        fill_snapshot(&answer->rows.rows[i], false, &messages[i]);
    }
    Aster__Lease__V1__Rows rows = ASTER__LEASE__V1__ROWS__INIT;
    rows.n_rows = count;
    rows.rows = (Aster__Lease__V1__Snapshot **)pointers;
    rows.more = answer->rows.more;
    reply->result_case = CASE(ROWS);
    reply->rows = &rows;
    return pack(reply, output, error);
}

static void fill_event(const struct aster_event *event, Aster__Lease__V1__Event *message)
{
    aster__lease__v1__event__init(message);
    message->revision = event->revision;
    message->unix_ms = event->unix_ms;
    message->kind = (Aster__Lease__V1__EventKind)event->kind;
    message->reason = (Aster__Lease__V1__Reason)event->reason;
    message->resource = aster_to_binary(event->resource);
    message->actor = aster_to_binary(event->actor);
    message->previous = aster_to_binary(event->previous);
    message->epoch = event->epoch;
    message->carried_epoch = event->carried_epoch;
}

static aster_status encode_events(const struct aster_answer *answer, Aster__Lease__V1__Reply *reply,
                                  const struct output *output, struct aster_error *error)
{
    void **pointers;
    size_t count = answer->events.count;
    Aster__Lease__V1__Event *messages = take_messages(output->scratch, count, sizeof *messages, &pointers);
    if (messages == NULL) {
        return aster_scratch_full(error);
    }
    for (size_t i = 0; i < count; i++) {
        fill_event(&answer->events.events[i], &messages[i]);
    }
    Aster__Lease__V1__Events events = ASTER__LEASE__V1__EVENTS__INIT;
    events.n_events = count;
    events.events = (Aster__Lease__V1__Event **)pointers;
    events.more = answer->events.more;
    events.revision = answer->events.revision;
    events.lost = answer->events.lost;
    events.cut = answer->events.cut;
    reply->result_case = CASE(EVENTS);
    reply->events = &events;
    return pack(reply, output, error);
}

static aster_status encode_accepted(const struct aster_answer *answer, Aster__Lease__V1__Reply *reply,
                                    const struct output *output, struct aster_error *error)
{
    Aster__Lease__V1__Accepted accepted = ASTER__LEASE__V1__ACCEPTED__INIT;
    accepted.version = answer->accepted.version;
    accepted.identity = aster_to_binary(answer->accepted.identity);
    accepted.agent = aster_to_binary(answer->accepted.agent);
    accepted.ttl_min_ms = answer->accepted.ttl_min_ms;
    accepted.ttl_max_ms = answer->accepted.ttl_max_ms;
    accepted.value_max_bytes = answer->accepted.value_max_bytes;
    accepted.in_flight_max = answer->accepted.in_flight_max;
    reply->result_case = CASE(ACCEPTED);
    reply->accepted = &accepted;
    return pack(reply, output, error);
}

aster_status aster_answer_encode(const struct aster_answer *answer, struct aster_scratch *scratch, void *data,
                                 size_t size, size_t *length, struct aster_error *error)
{
    const struct output output = {scratch, data, size, length};
    Aster__Lease__V1__Reply reply = ASTER__LEASE__V1__REPLY__INIT;
    Aster__Lease__V1__Decision decision;
    Aster__Lease__V1__Snapshot snapshot;
    Aster__Lease__V1__Error failure;
    reply.id = answer->id;
    switch (answer->kind) {
    case ASTER_ANSWER_ACCEPTED:
        return encode_accepted(answer, &reply, &output, error);
    case ASTER_ANSWER_DECISION:
        fill_decision(&answer->decision, &decision, &snapshot);
        reply.result_case = CASE(DECISION);
        reply.decision = &decision;
        return pack(&reply, &output, error);
    case ASTER_ANSWER_ERROR:
        fill_error(answer->error.status, answer->error.message, &failure);
        reply.result_case = CASE(ERROR);
        reply.error = &failure;
        return pack(&reply, &output, error);
    case ASTER_ANSWER_RENEWED_MANY:
        return encode_renewed(answer, &reply, &output, error);
    case ASTER_ANSWER_ROWS:
        return encode_rows(answer, &reply, &output, error);
    case ASTER_ANSWER_EVENTS:
        return encode_events(answer, &reply, &output, error);
    case ASTER_ANSWER_NODES:
    case ASTER_ANSWER_CHANGED:
        return aster_nodes_answer_encode(answer, &reply, scratch, data, size, length, error);
    default:
        return aster_error_set(error, ASTER_ERR_INVALID, "answer kind %d is unknown", (int)answer->kind);
    }
}
