/* Replies: golden bytes, round trips, and everything that a client must not believe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "wire/frame.h"
#include "wire/reply.h"

static unsigned char memory[ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];
static struct aster_scratch scratch;
static struct aster_error error;

static struct aster_scratch *fresh(void)
{
    scratch = (struct aster_scratch){memory, sizeof memory, 0};
    return &scratch;
}

static void round_trip(const struct aster_answer *answer, struct aster_answer *got)
{
    size_t length = 0;
    assert_int_equal(aster_answer_encode(answer, fresh(), wire, sizeof wire, &length, &error), ASTER_OK);
    struct aster_bytes payload = {wire, length};
    assert_int_equal(aster_answer_decode(payload, fresh(), got, &error), ASTER_OK);
    assert_int_equal(got->id, answer->id);
    assert_int_equal(got->kind, answer->kind);
}

static struct aster_decision grant(enum aster_operation_kind kind)
{
    struct aster_decision decision = {
        .struct_size = sizeof decision, .kind = kind, .outcome = ASTER_GRANTED, .epoch = 3};
    decision.snapshot.resource = aster_text("catalog");
    decision.snapshot.epoch = 3;
    decision.snapshot.held = true;
    decision.snapshot.holder = aster_text("w1");
    decision.snapshot.ttl_ms = 30000;
    decision.snapshot.remaining_ns = 29000000000;
    decision.snapshot.since_unix_ms = 1700000000000;
    decision.snapshot.lease_revision = 4;
    decision.snapshot.value = aster_text("state");
    decision.snapshot.value_revision = 2;
    decision.snapshot.last_holder = aster_text("w0");
    decision.snapshot.last_epoch_held = 1;
    return decision;
}

static void a_denial_has_these_bytes(void **state)
{
    (void)state;
    struct aster_answer answer = {.id = 5, .kind = ASTER_ANSWER_DECISION};
    answer.decision = (struct aster_decision){.struct_size = sizeof answer.decision,
                                              .kind = ASTER_OP_ACQUIRE,
                                              .reason = ASTER_REASON_HELD_BY_OTHER,
                                              .epoch = 3};
    answer.decision.snapshot.resource = aster_text("r");
    answer.decision.snapshot.epoch = 3;
    answer.decision.snapshot.held = true;
    answer.decision.snapshot.holder = aster_text("w1");
    size_t length = 0;
    assert_int_equal(aster_answer_encode(&answer, fresh(), wire, sizeof wire, &length, &error), ASTER_OK);
    static const char golden[] = "\x08\x05\x1a\x13\x08\x01\x18\x01\x30\x03\x42\x0b\x0a\x01r\x10\x03\x18\x01\x22\x02w1";
    assert_int_equal(length, sizeof golden - 1);
    assert_memory_equal(wire, golden, length);
}

static void a_grant_tells_the_whole_story(void **state)
{
    (void)state;
    struct aster_answer answer = {.id = 6, .kind = ASTER_ANSWER_DECISION};
    answer.decision = grant(ASTER_OP_ACQUIRE);
    answer.decision.takeover = true;
    answer.decision.replayed = true;
    struct aster_answer got;
    round_trip(&answer, &got);
    const struct aster_snapshot *snapshot = &got.decision.snapshot;
    assert_int_equal(got.decision.outcome, ASTER_GRANTED);
    assert_true(got.decision.takeover);
    assert_true(got.decision.replayed);
    assert_true(aster_bytes_equal(snapshot->value, aster_text("state")));
    assert_true(aster_bytes_equal(snapshot->last_holder, aster_text("w0")));
    assert_int_equal(snapshot->last_epoch_held, 1);
    assert_int_equal(snapshot->remaining_ns, 29000000000);
    assert_int_equal(snapshot->since_unix_ms, 1700000000000);
    assert_int_equal(snapshot->value_revision, 2);
}

static void a_granted_renewal_leaves_the_value_out(void **state)
{
    (void)state;
    struct aster_answer answer = {.id = 6, .kind = ASTER_ANSWER_DECISION};
    answer.decision = grant(ASTER_OP_RENEW);
    struct aster_answer got;
    round_trip(&answer, &got);
    assert_int_equal(got.decision.snapshot.value.size, 0);
    assert_int_equal(got.decision.snapshot.value_revision, 2);
}

static void a_batch_of_renewals_keeps_order_and_kinds_of_results(void **state)
{
    (void)state;
    struct aster_renewed results[3] = {{.status = ASTER_OK}, {.status = ASTER_OK}, {.status = ASTER_ERR_TIMEOUT}};
    results[0].decision = grant(ASTER_OP_RENEW);
    results[1].decision = grant(ASTER_OP_RENEW);
    results[1].decision.outcome = ASTER_DENIED;
    results[1].decision.reason = ASTER_REASON_EPOCH_MISMATCH;
    results[2].message = aster_text("too late");
    struct aster_answer answer = {.id = 8, .kind = ASTER_ANSWER_RENEWED_MANY};
    answer.renewed.results = results;
    answer.renewed.count = 3;
    struct aster_answer got;
    round_trip(&answer, &got);
    assert_int_equal(got.renewed.count, 3);
    assert_int_equal(got.renewed.results[0].decision.outcome, ASTER_GRANTED);
    assert_int_equal(got.renewed.results[0].decision.snapshot.remaining_ns, 29000000000);
    assert_int_equal(got.renewed.results[1].decision.reason, ASTER_REASON_EPOCH_MISMATCH);
    assert_true(aster_bytes_equal(got.renewed.results[1].decision.snapshot.holder, aster_text("w1")));
    assert_int_equal(got.renewed.results[2].status, ASTER_ERR_TIMEOUT);
    assert_true(aster_bytes_equal(got.renewed.results[2].message, aster_text("too late")));
}

static void errors_rows_events_and_the_greeting_come_back(void **state)
{
    (void)state;
    struct aster_answer got;
    for (aster_status status = ASTER_ERR_INVALID; status >= ASTER_ERR_REFUSED; status--) {
        struct aster_answer failure = {.id = 1, .kind = ASTER_ANSWER_ERROR};
        failure.error = (struct aster_wire_error){status, aster_text("why")};
        round_trip(&failure, &got);
        assert_int_equal(got.error.status, status);
    }
    struct aster_snapshot rows[2] = {grant(ASTER_OP_ACQUIRE).snapshot, grant(ASTER_OP_ACQUIRE).snapshot};
    rows[1].held = false;
    rows[1].holder = aster_text("");
    struct aster_answer listing = {.id = 2, .kind = ASTER_ANSWER_ROWS};
    listing.rows.rows = rows;
    listing.rows.count = 2;
    listing.rows.more = true;
    round_trip(&listing, &got);
    assert_int_equal(got.rows.count, 2);
    assert_true(got.rows.more);
    assert_false(got.rows.rows[1].held);
    assert_int_equal(got.rows.rows[0].value.size, 0);

    struct aster_event event = {.revision = 11,
                                .unix_ms = 12,
                                .kind = ASTER_EVENT_FENCE_REJECTED,
                                .reason = ASTER_REASON_STALE_EPOCH,
                                .resource = aster_text("r"),
                                .actor = aster_text("w0"),
                                .epoch = 4,
                                .carried_epoch = 3};
    struct aster_answer events = {.id = 3, .kind = ASTER_ANSWER_EVENTS};
    events.events.events = &event;
    events.events.count = 1;
    events.events.revision = 11;
    events.events.lost = true;
    events.events.cut = true;
    round_trip(&events, &got);
    assert_true(got.events.lost);
    assert_true(got.events.cut);
    assert_int_equal(got.events.events[0].carried_epoch, 3);
    assert_int_equal(got.events.events[0].reason, ASTER_REASON_STALE_EPOCH);

    struct aster_answer accepted = {.id = 0, .kind = ASTER_ANSWER_ACCEPTED};
    accepted.accepted.version = 1;
    accepted.accepted.identity = aster_text("w1");
    accepted.accepted.ttl_min_ms = 100;
    accepted.accepted.ttl_max_ms = 86400000;
    accepted.accepted.in_flight_max = 65536;
    round_trip(&accepted, &got);
    assert_true(aster_bytes_equal(got.accepted.identity, aster_text("w1")));
    assert_int_equal(got.accepted.in_flight_max, 65536);
}

static void refused(const void *data, size_t size, aster_status expected, const char *word)
{
    struct aster_answer got;
    memset(&got, 0x5a, sizeof got);
    struct aster_answer before = got;
    struct aster_bytes payload = {data, size};
    assert_int_equal(aster_answer_decode(payload, fresh(), &got, &error), expected);
    assert_memory_equal(&got, &before, sizeof got);
    assert_non_null(strstr(error.message, word));
    assert_int_equal(aster_answer_decode(payload, fresh(), &got, NULL), expected);
}

#define REFUSED(bytes, expected, word) refused(bytes, sizeof bytes - 1, expected, word)

static void a_client_believes_no_reply_that_breaks_a_rule(void **state)
{
    (void)state;
    REFUSED("\x08\x05", ASTER_ERR_VERSION, "no result");
    REFUSED("\xff", ASTER_ERR_INVALID, "protobuf");
    REFUSED("\x08\x05\x1a\x04\x08\x01\x18\x01", ASTER_ERR_INVALID, "no snapshot");
    REFUSED("\x08\x05\x1a\x09\x08\x01\x18\x63\x42\x03\x0a\x01r", ASTER_ERR_VERSION, "reason is 99");
    REFUSED("\x08\x05\x1a\x09\x08\x63\x18\x01\x42\x03\x0a\x01r", ASTER_ERR_VERSION, "kind is 99");
    REFUSED("\x08\x05\x1a\x07\x18\x01\x42\x03\x0a\x01r", ASTER_ERR_INVALID, "kind is absent");
    REFUSED("\x08\x05\x1a\x07\x08\x01\x42\x03\x0a\x01r", ASTER_ERR_INVALID, "denied without");
    REFUSED("\x08\x05\x1a\x09\x08\x01\x10\x01\x42\x03\x0a\x01\n", ASTER_ERR_INVALID, "control");
    REFUSED("\x08\x05\x1a\x0b\x08\x01\x10\x01\x42\x05\x0a\x01r\x18\x01", ASTER_ERR_INVALID, "held without");
    REFUSED("\x08\x05\x22\x00", ASTER_ERR_INVALID, "status is absent");
    REFUSED("\x08\x05\x22\x02\x08\x63", ASTER_ERR_VERSION, "status is 99");
    REFUSED("\x08\x05\x12\x00", ASTER_ERR_INVALID, "version is absent");
    REFUSED("\x08\x05\x2a\x02\x0a\x00", ASTER_ERR_VERSION, "no result");
    REFUSED("\x08\x05\x3a\x02\x0a\x00", ASTER_ERR_INVALID, "event kind is absent");
}

/* Casting between the two is only right while they agree. */
static void the_numbers_of_the_schema_are_the_numbers_of_the_headers(void **state)
{
    (void)state;
    assert_int_equal(ASTER__LEASE__V1__KIND__KIND_INSPECT, ASTER_OP_INSPECT);
    assert_int_equal(ASTER__LEASE__V1__KIND__KIND_PUT, ASTER_OP_PUT);
    assert_int_equal(aster__lease__v1__kind__descriptor.n_values, ASTER_OP_INSPECT + 1);
    assert_int_equal(aster__lease__v1__reason__descriptor.n_values, ASTER_REASON_NO_FENCE + 1);
    for (unsigned i = 0; i < aster__lease__v1__reason__descriptor.n_values; i++) {
        const ProtobufCEnumValue *value = &aster__lease__v1__reason__descriptor.values[i];
        assert_string_equal(value->name + strlen("REASON_"), aster_reason_name((enum aster_reason)value->value));
    }
    assert_int_equal(aster__lease__v1__status__descriptor.n_values, -ASTER_ERR_REFUSED + 1);
    for (unsigned i = 0; i < aster__lease__v1__status__descriptor.n_values; i++) {
        const ProtobufCEnumValue *value = &aster__lease__v1__status__descriptor.values[i];
        assert_string_equal(value->name + strlen("STATUS_"), aster_status_name(-value->value));
    }
    assert_int_equal(aster__lease__v1__event_kind__descriptor.n_values, ASTER_EVENT_UNAUTHORIZED + 1);
    assert_int_equal(ASTER__LEASE__V1__EVENT_KIND__EVENT_FENCE_REJECTED, ASTER_EVENT_FENCE_REJECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_denial_has_these_bytes),
        cmocka_unit_test(a_grant_tells_the_whole_story),
        cmocka_unit_test(a_granted_renewal_leaves_the_value_out),
        cmocka_unit_test(a_batch_of_renewals_keeps_order_and_kinds_of_results),
        cmocka_unit_test(errors_rows_events_and_the_greeting_come_back),
        cmocka_unit_test(a_client_believes_no_reply_that_breaks_a_rule),
        cmocka_unit_test(the_numbers_of_the_schema_are_the_numbers_of_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
