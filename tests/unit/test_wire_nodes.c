/* Messages about nodes: round trips, limits, and everything that must be refused. */
#include <stdint.h>
#include <stdlib.h>

#include "aster/lease/v1/grantor.pb-c.h"
#include "support/unit.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SPIFFE "spiffe://example.org/worker/1"

static unsigned char memory[2][ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];
static struct aster_scratch scratches[2];
static const struct aster_limits limits = ASTER_LIMITS_INIT;
static struct aster_error error;

static struct aster_scratch *fresh(int index)
{
    scratches[index] = (struct aster_scratch){memory[index], sizeof memory[index], 0};
    return &scratches[index];
}

static aster_status there_and_back(const struct aster_call *call, struct aster_call *again)
{
    size_t length = 0;
    uint64_t id = 0;
    assert_int_equal(aster_call_encode(call, fresh(0), wire, sizeof wire, &length, &error), ASTER_OK);
    return aster_call_decode((struct aster_bytes){wire, length}, aster_text("peer"), &limits, fresh(1), again, &id,
                             &error);
}

static void expect_refused(const struct aster_call *call, const char *said)
{
    struct aster_call again;
    assert_int_equal(there_and_back(call, &again), ASTER_ERR_INVALID);
    if (strstr(error.message, said) == NULL) {
        fail_msg("expected \"%s\" in: %s", said, error.message);
    }
}

static struct aster_bytes many[100];

static struct aster_call add_call(const char *id)
{
    struct aster_call call = {.id = 7, .kind = ASTER_CALL_NODE_ADD};
    call.node.record.id = aster_text(id);
    return call;
}

static void an_addition_comes_back_whole(void **state)
{
    (void)state;
    struct aster_bytes roles[] = {aster_text("worker"), aster_text("operator")};
    struct aster_bytes prefixes[] = {aster_text("invoice/")};
    struct aster_call call = add_call(SPIFFE);
    struct aster_call again;
    call.node.record.name = aster_text("worker 1");
    call.node.record.roles = (struct aster_bytes_list){roles, 2};
    call.node.record.resources = (struct aster_bytes_list){prefixes, 1};
    call.node.replace = true;
    assert_int_equal(there_and_back(&call, &again), ASTER_OK);
    assert_int_equal(again.kind, ASTER_CALL_NODE_ADD);
    assert_true(aster_bytes_equal(again.node.record.id, aster_text(SPIFFE)));
    assert_true(aster_bytes_equal(again.node.record.name, aster_text("worker 1")));
    assert_int_equal(again.node.record.roles.count, 2);
    assert_true(aster_bytes_equal(again.node.record.roles.items[1], roles[1]));
    assert_true(aster_bytes_equal(again.node.record.resources.items[0], prefixes[0]));
    assert_true(again.node.replace);
}

static void a_role_change_a_removal_a_listing_and_a_rule_come_back(void **state)
{
    (void)state;
    struct aster_bytes added[] = {aster_text("a")};
    struct aster_bytes dropped[] = {aster_text("b")};
    struct aster_call again;
    struct aster_call role = {.id = 1, .kind = ASTER_CALL_NODE_ROLE};
    role.node.record.id = aster_text(ID_A);
    role.node.record.roles = (struct aster_bytes_list){added, 1};
    role.node.dropped = (struct aster_bytes_list){dropped, 1};
    assert_int_equal(there_and_back(&role, &again), ASTER_OK);
    assert_true(aster_bytes_equal(again.node.dropped.items[0], dropped[0]));
    struct aster_call removal = {.id = 1, .kind = ASTER_CALL_NODE_REMOVE};
    removal.node.record.id = aster_text(ID_A);
    removal.node.revoke = true;
    assert_int_equal(there_and_back(&removal, &again), ASTER_OK);
    assert_int_equal(again.kind, ASTER_CALL_NODE_REMOVE);
    assert_true(again.node.revoke);
    struct aster_call list = {.id = 1, .kind = ASTER_CALL_NODE_LIST};
    assert_int_equal(there_and_back(&list, &again), ASTER_OK);
    assert_int_equal(again.kind, ASTER_CALL_NODE_LIST);
    struct aster_call require = {.id = 1, .kind = ASTER_CALL_REQUIRE};
    require.require = (struct aster_rule){ASTER_VERB_WATCH, aster_text("auditor"), false};
    assert_int_equal(there_and_back(&require, &again), ASTER_OK);
    assert_int_equal(again.require.verb, ASTER_VERB_WATCH);
    assert_true(aster_bytes_equal(again.require.role, aster_text("auditor")));
}

static void what_breaks_a_limit_is_refused_with_it(void **state)
{
    (void)state;
    static char long_text[ASTER_ROLE_MAX + 2];
    struct aster_call call = add_call("ABCDEF");
    memset(long_text, 'x', sizeof long_text - 1);
    expect_refused(&call, "64 lower-case hexadecimal digits");
    call = add_call(ID_A);
    call.node.record.name = aster_text(long_text);
    expect_refused(&call, "65 bytes long");
    call = add_call(ID_A);
    for (size_t i = 0; i < 100; i++) {
        many[i] = aster_text("r");
    }
    call.node.record.roles = (struct aster_bytes_list){many, ASTER_NODE_ROLES_MAX + 1};
    expect_refused(&call, "33 roles");
    call.node.record.roles.count = 0;
    call.node.record.resources = (struct aster_bytes_list){many, ASTER_NODE_RESOURCES_MAX + 1};
    expect_refused(&call, "65 prefixes");
    many[0] = aster_text("line\nbreak");
    call.node.record.resources.count = 1;
    expect_refused(&call, "control");
    call.node.record.resources.count = 0;
    call.node.record.roles.count = 1;
    expect_refused(&call, "control");
    many[0] = aster_text("");
    expect_refused(&call, "role");
}

static void a_role_change_must_say_something_definite(void **state)
{
    (void)state;
    struct aster_bytes role[] = {aster_text("a")};
    struct aster_call call = {.id = 1, .kind = ASTER_CALL_NODE_ROLE};
    call.node.record.id = aster_text(ID_A);
    expect_refused(&call, "no role is named");
    call.node.record.roles = (struct aster_bytes_list){role, 1};
    call.node.dropped = (struct aster_bytes_list){role, 1};
    expect_refused(&call, "choose one");
    struct aster_call require = {.id = 1, .kind = ASTER_CALL_REQUIRE};
    require.require.verb = 5; /* expire is the engine's */
    expect_refused(&require, "verb 5");
    require.require.verb = 99;
    expect_refused(&require, "verb 99");
}

static aster_status answer_back(const struct aster_answer *answer, struct aster_answer *again)
{
    size_t length = 0;
    assert_int_equal(aster_answer_encode(answer, fresh(0), wire, sizeof wire, &length, &error), ASTER_OK);
    return aster_answer_decode((struct aster_bytes){wire, length}, fresh(1), again, &error);
}

static void lists_and_changes_come_back(void **state)
{
    (void)state;
    struct aster_bytes roles[] = {aster_text("worker")};
    struct aster_node_record records[] = {
        {.id = aster_text(ID_A), .roles = {roles, 1}, .origin = ASTER_NODE_BY_OPERATOR, .links = 2},
        {.id = aster_text(SPIFFE), .origin = ASTER_NODE_REMOVED}};
    struct aster_rule rules[] = {{ASTER_OP_REVOKE, aster_text("operator"), true}};
    struct aster_answer answer = {.id = 3, .kind = ASTER_ANSWER_NODES};
    struct aster_answer again;
    answer.nodes.records = records;
    answer.nodes.count = 2;
    answer.nodes.more = true;
    answer.nodes.rules = rules;
    answer.nodes.rule_count = 1;
    assert_int_equal(answer_back(&answer, &again), ASTER_OK);
    assert_int_equal(again.nodes.count, 2);
    assert_int_equal(again.nodes.records[0].links, 2);
    assert_int_equal(again.nodes.records[1].origin, ASTER_NODE_REMOVED);
    assert_true(again.nodes.more && again.nodes.rules[0].by_operator);
    struct aster_answer changed = {.id = 3, .kind = ASTER_ANSWER_CHANGED};
    changed.changed.record = records[0];
    changed.changed.changed = true;
    changed.changed.revoked = 5;
    changed.changed.held = 6;
    changed.changed.held_ns = 7;
    changed.changed.links_ended = 8;
    assert_int_equal(answer_back(&changed, &again), ASTER_OK);
    assert_true(again.changed.changed && !again.changed.is_rule);
    assert_true(again.changed.revoked == 5 && again.changed.held == 6 && again.changed.held_ns == 7);
    assert_int_equal(again.changed.links_ended, 8);
    changed.changed.is_rule = true;
    changed.changed.rule = rules[0];
    assert_int_equal(answer_back(&changed, &again), ASTER_OK);
    assert_int_equal(again.changed.rule.verb, ASTER_OP_REVOKE);
}

static void a_client_believes_no_answer_that_breaks_a_rule(void **state)
{
    (void)state;
    struct aster_node_record record = {.id = aster_text(ID_A)};
    struct aster_answer answer = {.id = 3, .kind = ASTER_ANSWER_CHANGED};
    struct aster_answer again;
    answer.changed.record = record;
    assert_int_equal(answer_back(&answer, &again), ASTER_ERR_INVALID); /* no origin */
    answer.changed.record.origin = (enum aster_node_origin)9;
    assert_int_equal(answer_back(&answer, &again), ASTER_ERR_VERSION);
    answer.changed.record.origin = ASTER_NODE_CONFIGURED;
    answer.changed.held_ns = -1;
    assert_int_equal(answer_back(&answer, &again), ASTER_ERR_INVALID);
    answer.changed.is_rule = true;
    answer.changed.held_ns = 0;
    answer.changed.rule.verb = 77;
    assert_int_equal(answer_back(&answer, &again), ASTER_ERR_VERSION);
    struct aster_bytes neither = {"\x08\x03\x4a\x02\x18\x01", 6};
    assert_int_equal(aster_answer_decode(neither, fresh(1), &again, &error), ASTER_ERR_INVALID);
}

static void verbs_have_the_numbers_of_the_schema(void **state)
{
    (void)state;
    unsigned named = 0;
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value(&aster__lease__v1__verb__descriptor, verb);
        const char *name = aster_verb_name(verb);
        assert_int_equal(name != NULL, value != NULL && verb != 0);
        if (name != NULL) {
            assert_int_equal(strcasecmp(value->name + strlen("VERB_"), name), 0);
            assert_int_equal(aster_verb_find(name), verb);
            named++;
        }
    }
    assert_int_equal(aster__lease__v1__verb__descriptor.n_values, named + 1);
    assert_int_equal(aster_verb_find("steal"), -1);
    assert_int_equal(ASTER__LEASE__V1__NODE_ORIGIN__NODE_ORIGIN_REMOVED, ASTER_NODE_REMOVED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_addition_comes_back_whole),
        cmocka_unit_test(a_role_change_a_removal_a_listing_and_a_rule_come_back),
        cmocka_unit_test(what_breaks_a_limit_is_refused_with_it),
        cmocka_unit_test(a_role_change_must_say_something_definite),
        cmocka_unit_test(lists_and_changes_come_back),
        cmocka_unit_test(a_client_believes_no_answer_that_breaks_a_rule),
        cmocka_unit_test(verbs_have_the_numbers_of_the_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
