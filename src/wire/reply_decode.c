#include <inttypes.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"
#include "wire/reply.h"
#include "wire/request.h"

#define CASE(name) ASTER__LEASE__V1__REPLY__RESULT_##name

static aster_status check_enum(const char *name, int64_t value, int64_t min, int64_t max, struct aster_error *error)
{
    if (value < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %" PRId64 ": the server broke the protocol", name,
                               value);
    }
    if (value < min) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is absent: the server broke the protocol", name);
    }
    if (value > max) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "%s is %" PRId64 ", this build knows up to %" PRId64 ": update the client", name, value,
                               max);
    }
    return ASTER_OK;
}

static aster_status check_counter(const char *name, int64_t value, struct aster_error *error)
{
    if (value < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %" PRId64 ": the server broke the protocol", name,
                               value);
    }
    return ASTER_OK;
}

static aster_status check_optional_identity(struct aster_bytes identity, const char *role, struct aster_error *error)
{
    return identity.size == 0 ? ASTER_OK : aster_identity_check(identity, role, error);
}

static aster_status check_snapshot(const struct aster_snapshot *snapshot, struct aster_error *error)
{
    const struct {
        const char *name;
        int64_t value;
    } counters[] = {{"epoch", snapshot->epoch},
                    {"ttl_ms", snapshot->ttl_ms},
                    {"remaining_ns", snapshot->remaining_ns},
                    {"since_unix_ms", snapshot->since_unix_ms},
                    {"lease_revision", snapshot->lease_revision},
                    {"value_revision", snapshot->value_revision},
                    {"last_epoch_held", snapshot->last_epoch_held}};
    aster_status status = aster_resource_check(snapshot->resource, error);
    for (size_t i = 0; status == ASTER_OK && i < sizeof counters / sizeof counters[0]; i++) {
        status = check_counter(counters[i].name, counters[i].value, error);
    }
    if (status == ASTER_OK && snapshot->held != (snapshot->holder.size > 0)) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "a row is %s a holder: the server broke the protocol",
                                 snapshot->held ? "held without" : "free but has");
    }
    if (status == ASTER_OK && snapshot->value.size > ASTER_VALUE_MAX) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "value is %zu bytes, the limit is %d: the server broke the protocol",
                                 snapshot->value.size, ASTER_VALUE_MAX);
    }
    if (status == ASTER_OK) {
        status = check_optional_identity(snapshot->holder, "holder", error);
    }
    return status == ASTER_OK ? check_optional_identity(snapshot->last_holder, "last holder", error) : status;
}

static aster_status read_snapshot(const Aster__Lease__V1__Snapshot *message, struct aster_snapshot *snapshot,
                                  struct aster_error *error)
{
    *snapshot = (struct aster_snapshot){
        .resource = aster_from_binary(message->resource),
        .epoch = message->epoch,
        .held = message->held != 0,
        .holder = aster_from_binary(message->holder),
        .ttl_ms = message->ttl_ms,
        .remaining_ns = message->remaining_ns,
        .since_unix_ms = message->since_unix_ms,
        .lease_revision = message->lease_revision,
        .value = aster_from_binary(message->value),
        .value_revision = message->value_revision,
        .last_holder = aster_from_binary(message->last_holder),
        .last_epoch_held = message->last_epoch_held,
    };
    return check_snapshot(snapshot, error);
}

static aster_status read_decision(const Aster__Lease__V1__Decision *message, struct aster_decision *decision,
                                  struct aster_error *error)
{
    if (message->snapshot == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a decision has no snapshot: the server broke the protocol");
    }
    *decision = (struct aster_decision){
        .struct_size = sizeof *decision,
        .kind = (enum aster_operation_kind)message->kind,
        .outcome = message->granted ? ASTER_GRANTED : ASTER_DENIED,
        .reason = (enum aster_reason)message->reason,
        .replayed = message->replayed != 0,
        .takeover = message->takeover != 0,
        .epoch = message->epoch,
        .carried_epoch = message->carried_epoch,
    };
    aster_status status = check_enum("kind", (int64_t)message->kind, ASTER_OP_ACQUIRE, ASTER_OP_INSPECT, error);
    if (status == ASTER_OK) {
        status = check_enum("reason", (int64_t)message->reason, ASTER_REASON_NONE, ASTER_REASON_NO_FENCE, error);
    }
    if (status == ASTER_OK && (message->granted != 0) != (decision->reason == ASTER_REASON_NONE)) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "a decision is %s a reason: the server broke the protocol",
                                 message->granted ? "granted with" : "denied without");
    }
    if (status == ASTER_OK) {
        status = check_counter("epoch", message->epoch, error);
    }
    if (status == ASTER_OK) {
        status = check_counter("carried_epoch", message->carried_epoch, error);
    }
    return status == ASTER_OK ? read_snapshot(message->snapshot, &decision->snapshot, error) : status;
}

static aster_status read_error(const Aster__Lease__V1__Error *message, struct aster_wire_error *failure,
                               struct aster_error *error)
{
    aster_status status = check_enum("status", (int64_t)message->status, -ASTER_ERR_INVALID, -ASTER_ERR_REFUSED, error);
    if (status == ASTER_OK && message->message.len >= ASTER_ERROR_MESSAGE_MAX) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "an error's text is %zu bytes, the limit is %d: the server broke the protocol",
                                 message->message.len, ASTER_ERROR_MESSAGE_MAX - 1);
    }
    if (status == ASTER_OK) {
        *failure = (struct aster_wire_error){-(aster_status)message->status, aster_from_binary(message->message)};
    }
    return status;
}

static aster_status read_confirmed(const Aster__Lease__V1__Confirmed *message, struct aster_renewed *result,
                                   struct aster_error *error)
{
    result->decision = (struct aster_decision){.struct_size = sizeof result->decision,
                                               .kind = ASTER_OP_RENEW,
                                               .outcome = ASTER_GRANTED,
                                               .epoch = message->epoch,
                                               .carried_epoch = message->epoch};
    result->decision.snapshot.epoch = message->epoch;
    result->decision.snapshot.lease_revision = message->lease_revision;
    result->decision.snapshot.remaining_ns = message->remaining_ns;
    aster_status status = check_counter("epoch", message->epoch, error);
    if (status == ASTER_OK) {
        status = check_counter("lease_revision", message->lease_revision, error);
    }
    return status == ASTER_OK ? check_counter("remaining_ns", message->remaining_ns, error) : status;
}

static aster_status read_renewed(const Aster__Lease__V1__Renewed *message, struct aster_renewed *result,
                                 struct aster_error *error)
{
    memset(result, 0, sizeof *result);
    struct aster_wire_error failure;
    aster_status status;
    switch (message->result_case) {
    case ASTER__LEASE__V1__RENEWED__RESULT_CONFIRMED:
        return read_confirmed(message->confirmed, result, error);
    case ASTER__LEASE__V1__RENEWED__RESULT_DECISION:
        return read_decision(message->decision, &result->decision, error);
    case ASTER__LEASE__V1__RENEWED__RESULT_ERROR:
        status = read_error(message->error, &failure, error);
        if (status == ASTER_OK) {
            result->status = failure.status;
            result->message = failure.message;
        }
        return status;
    default:
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "a renewal has no result that this build knows: update the client");
    }
}

static aster_status take_results(struct aster_scratch *scratch, size_t count, size_t max, size_t size, void *results,
                                 struct aster_error *error)
{
    if (count > max) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%zu entries in one reply, the limit is %zu: the server broke the protocol", count, max);
    }
    void *memory = aster_scratch_take(scratch, count * size);
    memcpy(results, &memory, sizeof memory);
    return memory != NULL ? ASTER_OK : aster_scratch_full(error);
}

static aster_status read_renewed_many(const Aster__Lease__V1__RenewedMany *message, struct aster_scratch *scratch,
                                      struct aster_answer *answer, struct aster_error *error)
{
    answer->kind = ASTER_ANSWER_RENEWED_MANY;
    answer->renewed.count = message->n_results;
    aster_status status = take_results(scratch, message->n_results, ASTER_WIRE_RENEW_MANY_MAX,
                                       sizeof *answer->renewed.results, &answer->renewed.results, error);
    for (size_t i = 0; status == ASTER_OK && i < message->n_results; i++) {
        status = read_renewed(message->results[i], &answer->renewed.results[i], error);
    }
    return status;
}

static aster_status read_rows(const Aster__Lease__V1__Rows *message, struct aster_scratch *scratch,
                              struct aster_answer *answer, struct aster_error *error)
{
    answer->kind = ASTER_ANSWER_ROWS;
    answer->rows.count = message->n_rows;
    answer->rows.more = message->more != 0;
    aster_status status = take_results(scratch, message->n_rows, ASTER_WIRE_ROWS_MAX, sizeof *answer->rows.rows,
                                       &answer->rows.rows, error);
    for (size_t i = 0; status == ASTER_OK && i < message->n_rows; i++) {
        status = read_snapshot(message->rows[i], &answer->rows.rows[i], error);
    }
    return status;
}

static aster_status read_event(const Aster__Lease__V1__Event *message, struct aster_event *event,
                               struct aster_error *error)
{
    *event = (struct aster_event){
        .revision = message->revision,
        .unix_ms = message->unix_ms,
        .kind = (enum aster_event_kind)message->kind,
        .reason = (enum aster_reason)message->reason,
        .resource = aster_from_binary(message->resource),
        .actor = aster_from_binary(message->actor),
        .previous = aster_from_binary(message->previous),
        .epoch = message->epoch,
        .carried_epoch = message->carried_epoch,
    };
    aster_status status =
        check_enum("event kind", (int64_t)message->kind, ASTER_EVENT_GRANTED, ASTER_EVENT_UNAUTHORIZED, error);
    if (status == ASTER_OK) {
        status = check_enum("reason", (int64_t)message->reason, ASTER_REASON_NONE, ASTER_REASON_NO_FENCE, error);
    }
    if (status == ASTER_OK) {
        status = aster_resource_check(event->resource, error);
    }
    if (status == ASTER_OK) {
        status = check_optional_identity(event->actor, "actor", error);
    }
    if (status == ASTER_OK) {
        status = check_optional_identity(event->previous, "previous holder", error);
    }
    const int64_t counters[] = {event->revision, event->unix_ms, event->epoch, event->carried_epoch};
    for (size_t i = 0; status == ASTER_OK && i < sizeof counters / sizeof counters[0]; i++) {
        status = check_counter("a number of an event", counters[i], error);
    }
    return status;
}

static aster_status read_events(const Aster__Lease__V1__Events *message, struct aster_scratch *scratch,
                                struct aster_answer *answer, struct aster_error *error)
{
    answer->kind = ASTER_ANSWER_EVENTS;
    answer->events.count = message->n_events;
    answer->events.more = message->more != 0;
    answer->events.revision = message->revision;
    answer->events.lost = message->lost != 0;
    answer->events.cut = message->cut != 0;
    aster_status status = check_counter("revision", message->revision, error);
    if (status == ASTER_OK) {
        status = take_results(scratch, message->n_events, ASTER_WIRE_ROWS_MAX, sizeof *answer->events.events,
                              &answer->events.events, error);
    }
    for (size_t i = 0; status == ASTER_OK && i < message->n_events; i++) {
        status = read_event(message->events[i], &answer->events.events[i], error);
    }
    return status;
}

static aster_status read_accepted(const Aster__Lease__V1__Accepted *message, struct aster_answer *answer,
                                  struct aster_error *error)
{
    answer->kind = ASTER_ANSWER_ACCEPTED;
    answer->accepted.version = message->version;
    answer->accepted.identity = aster_from_binary(message->identity);
    answer->accepted.agent = aster_from_binary(message->agent);
    answer->accepted.ttl_min_ms = message->ttl_min_ms;
    answer->accepted.ttl_max_ms = message->ttl_max_ms;
    answer->accepted.value_max_bytes = message->value_max_bytes;
    answer->accepted.in_flight_max = message->in_flight_max;
    aster_status status = check_enum("version", message->version, 1, ASTER_WIRE_VERSION, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(answer->accepted.identity, "identity", error);
    }
    if (status == ASTER_OK) {
        status = check_optional_identity(answer->accepted.agent, "agent", error);
    }
    if (status == ASTER_OK && (message->ttl_min_ms < 1 || message->ttl_max_ms < message->ttl_min_ms)) {
        status =
            aster_error_set(error, ASTER_ERR_INVALID,
                            "ttl limits %" PRId64 " to %" PRId64 " ms make no range: the server broke the protocol",
                            message->ttl_min_ms, message->ttl_max_ms);
    }
    return status;
}

static aster_status read_reply(const Aster__Lease__V1__Reply *reply, struct aster_scratch *scratch,
                               struct aster_answer *answer, struct aster_error *error)
{
    answer->id = reply->id;
    switch (reply->result_case) {
    case CASE(ACCEPTED):
        return read_accepted(reply->accepted, answer, error);
    case CASE(DECISION):
        answer->kind = ASTER_ANSWER_DECISION;
        return read_decision(reply->decision, &answer->decision, error);
    case CASE(ERROR):
        answer->kind = ASTER_ANSWER_ERROR;
        return read_error(reply->error, &answer->error, error);
    case CASE(RENEWED_MANY):
        return read_renewed_many(reply->renewed_many, scratch, answer, error);
    case CASE(ROWS):
        return read_rows(reply->rows, scratch, answer, error);
    case CASE(EVENTS):
        return read_events(reply->events, scratch, answer, error);
    case CASE(NODES):
        return aster_nodes_read(reply->nodes, scratch, answer, error);
    case CASE(CHANGED):
        return aster_changed_read(reply->changed, scratch, answer, error);
    default:
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "a reply has no result that this build knows: update the client");
    }
}

aster_status aster_answer_decode(struct aster_bytes payload, struct aster_scratch *scratch, struct aster_answer *answer,
                                 struct aster_error *error)
{
    struct aster_error local = ASTER_ERROR_INIT;
    struct aster_error *detail = error != NULL ? error : &local;
    const Aster__Lease__V1__Reply *reply =
        aster_message_unpack(&aster__lease__v1__reply__descriptor, payload, scratch, detail);
    if (reply == NULL) {
        return detail->status;
    }
    struct aster_answer read;
    memset(&read, 0, sizeof read);
    aster_status status = read_reply(reply, scratch, &read, detail);
    if (status == ASTER_OK) {
        *answer = read;
    }
    return status;
}
