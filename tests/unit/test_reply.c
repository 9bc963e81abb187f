/* Replies own what they show; descriptions say what to do next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/serializer.h"

static struct aster_decision decision_about(const char *resource, const char *holder)
{
    struct aster_decision decision = {.struct_size = sizeof decision,
                                      .kind = ASTER_OP_ACQUIRE,
                                      .outcome = ASTER_DENIED,
                                      .reason = ASTER_REASON_HELD_BY_OTHER,
                                      .epoch = 3};
    decision.snapshot.resource = aster_text(resource);
    decision.snapshot.holder = aster_text(holder);
    decision.snapshot.held = true;
    decision.snapshot.epoch = 3;
    decision.snapshot.remaining_ns = INT64_C(4200000000);
    decision.snapshot.since_unix_ms = INT64_C(1700000000000);
    return decision;
}

static void a_reply_keeps_its_own_copy_of_every_name(void **state)
{
    (void)state;
    char resource[] = "catalog";
    char holder[] = "w1";
    struct aster_decision decision = decision_about(resource, holder);
    decision.snapshot.value = (struct aster_bytes){"a\0b", 3};
    decision.snapshot.last_holder = aster_text("w0");
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_reply_set(&reply, &decision), ASTER_OK);
    memset(resource, 'x', sizeof resource);
    memset(holder, 'x', sizeof holder);
    const struct aster_snapshot *kept = &reply.decision.snapshot;
    assert_true(aster_bytes_equal(kept->resource, aster_text("catalog")));
    assert_true(aster_bytes_equal(kept->holder, aster_text("w1")));
    assert_true(aster_bytes_equal(kept->value, (struct aster_bytes){"a\0b", 3}));
    assert_true(aster_bytes_equal(kept->last_holder, aster_text("w0")));
    aster_reply_fini(&reply);
    assert_int_equal(reply.decision.snapshot.resource.size, 0);
    aster_reply_fini(&reply);
    aster_reply_fini(NULL);
}

static void a_reply_can_be_set_from_itself_and_replaced(void **state)
{
    (void)state;
    struct aster_decision first = decision_about("first", "w1");
    struct aster_decision second = decision_about("second", "w2");
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_reply_set(&reply, &first), ASTER_OK);
    assert_int_equal(aster_reply_set(&reply, &reply.decision), ASTER_OK);
    assert_true(aster_bytes_equal(reply.decision.snapshot.resource, aster_text("first")));
    assert_int_equal(aster_reply_set(&reply, &second), ASTER_OK);
    assert_true(aster_bytes_equal(reply.decision.snapshot.holder, aster_text("w2")));
    aster_reply_fini(&reply);
}

static void a_decision_of_an_older_serializer_is_completed_with_zeroes(void **state)
{
    (void)state;
    struct aster_decision old = decision_about("r", "w");
    old.struct_size = offsetof(struct aster_decision, snapshot);
    struct aster_reply reply = ASTER_REPLY_INIT;
    assert_int_equal(aster_reply_set(&reply, &old), ASTER_OK);
    assert_int_equal(reply.decision.epoch, 3);
    assert_int_equal(reply.decision.snapshot.epoch, 0);
    assert_int_equal(reply.decision.struct_size, sizeof reply.decision);
    aster_reply_fini(&reply);
}

static void a_denial_says_who_holds_since_when_and_what_to_do(void **state)
{
    (void)state;
    struct aster_decision decision = decision_about("catalog", "w1");
    char text[256];
    size_t length = aster_decision_describe(&decision, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text, "HELD_BY_OTHER: catalog is held by w1, epoch 3, since 2023-11-14T22:13:20Z, remaining "
                              "4.2s; wait until it is released or expires");
    decision.reason = ASTER_REASON_STALE_EPOCH;
    decision.carried_epoch = 1;
    aster_decision_describe(&decision, text, sizeof text);
    assert_non_null(strstr(text, "carried epoch 1; that lease is over: stop"));
}

static void an_epoch_mismatch_fits_what_was_asked(void **state)
{
    (void)state;
    static const struct {
        enum aster_operation_kind kind;
        int64_t carried_epoch;
        const char *words;
    } cases[] = {{ASTER_OP_RENEW, 2, "acquire again"},
                 {ASTER_OP_RELEASE, 2, "nothing left to release"},
                 {ASTER_OP_REVOKE, 2, "look at the current one"},
                 {ASTER_OP_RENEW, 4, "no lease ever had that epoch"},
                 {ASTER_OP_REVOKE, 4, "no lease ever had that epoch"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct aster_decision decision = decision_about("catalog", "w1");
        char text[256];
        decision.reason = ASTER_REASON_EPOCH_MISMATCH;
        decision.kind = cases[i].kind;
        decision.carried_epoch = cases[i].carried_epoch;
        aster_decision_describe(&decision, text, sizeof text);
        assert_non_null(strstr(text, cases[i].words));
    }
}

static void a_refused_right_says_nothing_about_the_row(void **state)
{
    (void)state;
    char text[256];
    struct aster_decision decision = {.struct_size = sizeof decision,
                                      .kind = ASTER_OP_REVOKE,
                                      .outcome = ASTER_DENIED,
                                      .reason = ASTER_REASON_UNAUTHORIZED};
    decision.snapshot.resource = aster_text("catalog");
    aster_decision_describe(&decision, text, sizeof text);
    assert_string_equal(text, "UNAUTHORIZED: this identity may not revoke catalog; ask the operator for the right");
}

static void a_description_is_cut_to_the_buffer_and_terminated(void **state)
{
    (void)state;
    struct aster_decision decision = decision_about("catalog", "w1");
    char full[256];
    size_t length = aster_decision_describe(&decision, full, sizeof full);
    char text[256];
    for (size_t size = 0; size <= length + 1; size++) {
        memset(text, 'x', sizeof text);
        size_t got = aster_decision_describe(&decision, text, size);
        assert_int_equal(got, size == 0 ? 0 : size - 1);
        assert_true(size == 0 || text[got] == '\0');
        assert_int_equal(text[size], 'x');
        assert_memory_equal(text, full, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_keeps_its_own_copy_of_every_name),
        cmocka_unit_test(a_reply_can_be_set_from_itself_and_replaced),
        cmocka_unit_test(a_decision_of_an_older_serializer_is_completed_with_zeroes),
        cmocka_unit_test(a_denial_says_who_holds_since_when_and_what_to_do),
        cmocka_unit_test(an_epoch_mismatch_fits_what_was_asked),
        cmocka_unit_test(a_refused_right_says_nothing_about_the_row),
        cmocka_unit_test(a_description_is_cut_to_the_buffer_and_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
