/* Leases of a grantor as a program sees them, when nothing goes wrong but what the program itself does wrong. */
#include "support/unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aster/lease.h"
#include "aster/sys/serializer.h"
#include "support/remote_grantor.h"

static struct remote_grantor grantor;
static struct remote_client a;
static struct remote_client b;
static struct aster_reply reply;
static struct aster_error error;

static int open_all(void **state)
{
    (void)state;
    remote_grantor_init(&grantor, NULL);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    remote_client_init(&a);
    remote_client_init(&b);
    struct aster_grantor_options options = remote_client_options(&a, &grantor);
    remote_client_open(&a, &options);
    options = remote_client_options(&b, &grantor);
    remote_client_open(&b, &options);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    aster_reply_fini(&reply);
    remote_client_fini(&a);
    remote_client_fini(&b);
    remote_grantor_fini(&grantor);
    return 0;
}

static struct aster_operation op(enum aster_operation_kind kind, const char *resource, struct remote_client *who)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_grantor_identity(who->serializer);
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    return operation;
}

static void expect_granted(struct remote_client *who, const struct aster_operation *operation)
{
    if (aster_serializer_call(who->serializer, operation, 0, &reply, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
}

static void the_identity_is_the_nodes_own(void **state)
{
    (void)state;
    struct aster_bytes identity = aster_grantor_identity(a.serializer);
    assert_true(aster_bytes_equal(identity, aster_text(a.id)));
    assert_int_equal(aster_grantor_identity(grantor.serializer).size, 0);
    assert_string_equal(aster_serializer_name(a.serializer), "grantor");
}

static void one_resource_goes_from_one_node_to_the_other(void **state)
{
    (void)state;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    assert_int_equal(reply.decision.epoch, 1);
    operation = op(ASTER_OP_ACQUIRE, "catalog", &b);
    assert_int_equal(aster_serializer_call(b.serializer, &operation, 0, &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_true(aster_bytes_equal(reply.decision.snapshot.holder, aster_text(a.id)));
    operation = op(ASTER_OP_RENEW, "catalog", &a);
    operation.epoch = 1;
    expect_granted(&a, &operation);
    assert_int_equal(reply.decision.snapshot.lease_revision, 1);
    operation.kind = ASTER_OP_RELEASE;
    expect_granted(&a, &operation);
    operation = op(ASTER_OP_ACQUIRE, "catalog", &b);
    expect_granted(&b, &operation);
    assert_int_equal(reply.decision.epoch, 3);
}

static void a_value_is_stored_under_the_fence_and_read_by_anyone(void **state)
{
    (void)state;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    struct aster_fence fence = {.epoch = 1};
    fence.resource = aster_text("catalog");
    fence.holder = aster_text(a.id);
    fence.epoch = 1;
    static char large[ASTER_VALUE_MAX];
    memset(large, 'x', sizeof large);
    const struct aster_bytes value = {large, sizeof large};
    assert_int_equal(aster_put(a.serializer, &fence, fence.holder, 0, value, &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_NONE);
    assert_int_equal(aster_inspect(b.serializer, fence.resource, &reply, &error), ASTER_OK);
    assert_true(aster_bytes_equal(reply.decision.snapshot.value, value));
    fence.epoch = 0;
    assert_int_equal(aster_put(a.serializer, &fence, fence.holder, 1, value, &reply, &error), ASTER_OK);
    assert_int_equal(reply.decision.reason, ASTER_REASON_STALE_EPOCH);
}

static void acting_as_another_is_refused_before_it_is_sent(void **state)
{
    (void)state;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &b);
    assert_int_equal(aster_serializer_call(a.serializer, &operation, 0, &reply, &error), ASTER_ERR_INVALID);
    char ours[17];
    char theirs[17];
    snprintf(ours, sizeof ours, "%.16s", a.id);
    snprintf(theirs, sizeof theirs, "%.16s", b.id);
    assert_non_null(strstr(error.message, ours));
    assert_non_null(strstr(error.message, theirs));
    assert_int_equal(atomic_load(&grantor.requests), 0);
    operation = op(ASTER_OP_INSPECT, "catalog", &a);
    operation.caller = aster_text(NULL);
    expect_granted(&a, &operation);
}

static aster_status never(void *tx, void *user)
{
    (void)tx;
    (void)user;
    fail_msg("the mutation must not run");
    return ASTER_OK;
}

static void a_fenced_write_says_what_to_use_instead(void **state)
{
    (void)state;
    struct aster_fence fence = {.epoch = 1};
    struct aster_verdict verdict;
    fence.resource = aster_text("catalog");
    fence.holder = aster_text(a.id);
    fence.epoch = 1;
    assert_int_equal(aster_mutate_fenced(a.serializer, &fence, fence.holder, never, NULL, &verdict, &error),
                     ASTER_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "aster_put"));
}

static void a_limit_of_the_grantor_is_answered_in_its_words(void **state)
{
    (void)state;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    operation.ttl_ms = 50;
    assert_int_equal(aster_serializer_call(a.serializer, &operation, 0, &reply, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "100"));
}

static bool count_row(const struct aster_snapshot *snapshot, void *user)
{
    char expected[16];
    size_t *count = user;
    snprintf(expected, sizeof expected, "row/%03zu", *count);
    assert_true(aster_bytes_equal(snapshot->resource, aster_text(expected)));
    ++*count;
    return true;
}

static bool count_event(const struct aster_event *event, void *user)
{
    size_t *count = user;
    assert_int_equal(event->kind, ASTER_EVENT_GRANTED);
    assert_true(aster_bytes_equal(event->actor, aster_text(a.id)));
    ++*count;
    return true;
}

static void list_and_history_come_in_pages_and_leave_none_out(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "row/%03u", i);
        struct aster_operation operation = op(ASTER_OP_ACQUIRE, name, &a);
        expect_granted(&a, &operation);
    }
    size_t count = 0;
    assert_int_equal(aster_list(b.serializer, aster_text("row/"), count_row, &count, &error), ASTER_OK);
    assert_int_equal(count, 200);
    count = 0;
    assert_int_equal(aster_history(b.serializer, NULL, count_event, &count, &error), ASTER_OK);
    assert_int_equal(count, 200);
}

static void a_handle_waits_its_turn_at_the_grantor(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *first = NULL;
    struct aster_lease *second = NULL;
    assert_int_equal(
        aster_lease_acquire(a.serializer, aster_text("catalog"), aster_text(a.id), &options, &first, &reply, &error),
        ASTER_OK);
    assert_non_null(aster_lease_fence(first));
    options.wait_ms = 10000;
    assert_int_equal(
        aster_lease_start(b.serializer, aster_text("catalog"), aster_text(b.id), &options, &second, &error), ASTER_OK);
    while (atomic_load(&grantor.requests) < 2) { /* it has arrived */
        usleep(1000);
    }
    assert_null(aster_lease_fence(second));
    assert_int_equal(aster_lease_release(first, 5000, NULL, &error), ASTER_OK);
    assert_int_equal(aster_lease_wait_acquired(second, 5000, &reply, &error), ASTER_OK);
    assert_non_null(aster_lease_fence(second));
    assert_int_equal(aster_lease_fence(second)->epoch, 3);
    assert_int_equal(atomic_load(&grantor.requests), 3); /* nobody has polled */
    aster_lease_destroy(first);
    aster_lease_destroy(second);
}

static void a_cancelled_wait_ends_and_leaves_the_queue(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    options.wait_ms = 60000;
    assert_int_equal(
        aster_lease_start(b.serializer, aster_text("catalog"), aster_text(b.id), &options, &waiting, &error), ASTER_OK);
    while (atomic_load(&grantor.requests) < 2) {
        usleep(1000);
    }
    aster_lease_cancel(waiting);
    assert_int_equal(aster_lease_wait_acquired(waiting, 5000, &reply, &error), ASTER_ERR_CANCELLED);
    aster_lease_destroy(waiting);
    while (atomic_load(&grantor.cancels) < 1) {
        usleep(1000);
    }
    operation = op(ASTER_OP_RELEASE, "catalog", &a);
    operation.epoch = 1;
    expect_granted(&a, &operation);
    assert_int_equal(aster_inspect(a.serializer, aster_text("catalog"), &reply, &error), ASTER_OK);
    assert_false(reply.decision.snapshot.held); /* nobody was granted */
}

static void closing_answers_a_waiter_and_takes_it_out_of_the_queue(void **state)
{
    (void)state;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    options.wait_ms = 60000;
    assert_int_equal(
        aster_lease_start(b.serializer, aster_text("catalog"), aster_text(b.id), &options, &waiting, &error), ASTER_OK);
    while (atomic_load(&grantor.requests) < 2) {
        usleep(1000);
    }
    aster_serializer_close(b.serializer);
    assert_int_equal(aster_lease_wait_acquired(waiting, 5000, &reply, &error), ASTER_ERR_CLOSED);
    aster_lease_destroy(waiting);
    operation = op(ASTER_OP_ACQUIRE, "other", &b);
    assert_int_equal(aster_serializer_call(b.serializer, &operation, 0, &reply, &error), ASTER_ERR_CLOSED);
}

static void a_forked_child_is_told_to_open_its_own(void **state)
{
    (void)state;
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    pid_t child = fork();
    if (child == 0) {
        aster_status status = aster_inspect(a.serializer, aster_text("catalog"), &reply, &error);
        aster_serializer_destroy(a.serializer);
        _exit(status == ASTER_ERR_FORKED ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    unsigned links = atomic_load(&grantor.links);
    expect_granted(&a, &(struct aster_operation){sizeof(struct aster_operation),
                                                 ASTER_OP_INSPECT,
                                                 0,
                                                 aster_text("catalog"),
                                                 {NULL, 0},
                                                 {0},
                                                 0,
                                                 0,
                                                 0,
                                                 0,
                                                 {NULL, 0},
                                                 {NULL, 0}});
    assert_int_equal(atomic_load(&grantor.links), links); /* the parent's connection is as it was */
}

static void the_queue_is_bounded(void **state)
{
    (void)state;
    struct remote_client small;
    remote_client_init(&small);
    struct aster_grantor_options options = remote_client_options(&small, &grantor);
    options.queue_max = 1;
    remote_client_open(&small, &options);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "catalog", &a);
    expect_granted(&a, &operation);
    struct aster_lease_options waits = ASTER_LEASE_OPTIONS_INIT;
    struct aster_lease *waiting = NULL;
    waits.wait_ms = 60000;
    assert_int_equal(
        aster_lease_start(small.serializer, aster_text("catalog"), aster_text(small.id), &waits, &waiting, &error),
        ASTER_OK);
    while (atomic_load(&grantor.requests) < 2) {
        usleep(1000);
    }
    assert_int_equal(aster_inspect(small.serializer, aster_text("catalog"), &reply, &error), ASTER_ERR_LIMIT);
    assert_non_null(strstr(error.message, "queue_max"));
    aster_lease_destroy(waiting);
    remote_client_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_identity_is_the_nodes_own, open_all, close_all),
        cmocka_unit_test_setup_teardown(one_resource_goes_from_one_node_to_the_other, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_value_is_stored_under_the_fence_and_read_by_anyone, open_all, close_all),
        cmocka_unit_test_setup_teardown(acting_as_another_is_refused_before_it_is_sent, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_fenced_write_says_what_to_use_instead, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_limit_of_the_grantor_is_answered_in_its_words, open_all, close_all),
        cmocka_unit_test_setup_teardown(list_and_history_come_in_pages_and_leave_none_out, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_handle_waits_its_turn_at_the_grantor, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_cancelled_wait_ends_and_leaves_the_queue, open_all, close_all),
        cmocka_unit_test_setup_teardown(closing_answers_a_waiter_and_takes_it_out_of_the_queue, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_forked_child_is_told_to_open_its_own, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_queue_is_bounded, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
