#include <inttypes.h>

#include "base/error.h"
#include "wire/nodes_messages.h"
#include "wire/pack.h"

#define CASE(name) ASTER__LEASE__V1__REPLY__RESULT_##name

/* ---- encode ---- */

static aster_status fill_node(const struct aster_node_record *record, struct aster_scratch *scratch,
                              Aster__Lease__V1__Node *message, struct aster_error *error)
{
    aster__lease__v1__node__init(message);
    message->id = aster_to_binary(record->id);
    message->name = aster_to_binary(record->name);
    message->origin = (Aster__Lease__V1__NodeOrigin)record->origin;
    message->links = record->links;
    aster_status status = aster_list_to_binary(&record->roles, scratch, &message->n_roles, &message->roles, error);
    return status == ASTER_OK
               ? aster_list_to_binary(&record->resources, scratch, &message->n_resources, &message->resources, error)
               : status;
}

static void fill_rule(const struct aster_rule *rule, Aster__Lease__V1__Rule *message)
{
    aster__lease__v1__rule__init(message);
    message->verb = (Aster__Lease__V1__Verb)rule->verb;
    message->role = aster_to_binary(rule->role);
    message->by_operator = rule->by_operator;
}

static aster_status fill_nodes(const struct aster_answer *answer, struct aster_scratch *scratch,
                               Aster__Lease__V1__Nodes *message, struct aster_error *error)
{
    size_t count = answer->nodes.count;
    size_t rules = answer->nodes.rule_count;
    Aster__Lease__V1__Node *nodes = aster_scratch_take(scratch, count * sizeof *nodes);
    Aster__Lease__V1__Rule *of_rules = aster_scratch_take(scratch, rules * sizeof *of_rules);
    message->nodes = aster_scratch_take(scratch, count * sizeof(void *));
    message->rules = aster_scratch_take(scratch, rules * sizeof(void *));
    if (nodes == NULL || of_rules == NULL || message->nodes == NULL || message->rules == NULL) {
        return aster_scratch_full(error);
    }
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < count; i++) {
        message->nodes[i] = &nodes[i];
        status = fill_node(&answer->nodes.records[i], scratch, &nodes[i], error);
    }
    for (size_t i = 0; i < rules; i++) {
        message->rules[i] = &of_rules[i];
        fill_rule(&answer->nodes.rules[i], &of_rules[i]);
    }
    message->n_nodes = count;
    message->n_rules = rules;
    message->more = answer->nodes.more;
    return status;
}

aster_status aster_nodes_answer_encode(const struct aster_answer *answer, const Aster__Lease__V1__Reply *reply,
                                       struct aster_scratch *scratch, void *data, size_t size, size_t *length,
                                       struct aster_error *error)
{
    Aster__Lease__V1__Reply whole = *reply; /* what it points to lives here only */
    Aster__Lease__V1__Nodes nodes = ASTER__LEASE__V1__NODES__INIT;
    Aster__Lease__V1__Changed changed = ASTER__LEASE__V1__CHANGED__INIT;
    Aster__Lease__V1__Node node;
    Aster__Lease__V1__Rule rule;
    aster_status status = ASTER_OK;
    if (answer->kind == ASTER_ANSWER_NODES) {
        status = fill_nodes(answer, scratch, &nodes, error);
        whole.result_case = CASE(NODES);
        whole.nodes = &nodes;
    } else {
        if (answer->changed.is_rule) {
            fill_rule(&answer->changed.rule, &rule);
            changed.rule = &rule;
        } else {
            status = fill_node(&answer->changed.record, scratch, &node, error);
            changed.node = &node;
        }
        changed.changed = answer->changed.changed;
        changed.links_ended = answer->changed.links_ended;
        changed.revoked = answer->changed.revoked;
        changed.held = answer->changed.held;
        changed.held_ns = answer->changed.held_ns;
        whole.result_case = CASE(CHANGED);
        whole.changed = &changed;
    }
    return status == ASTER_OK ? aster_message_pack(&whole.base, data, size, length, error) : status;
}

/* ---- decode ---- */

static aster_status broken(struct aster_error *error, const char *what)
{
    return aster_error_set(error, ASTER_ERR_INVALID, "%s: the server broke the protocol", what);
}

static aster_status read_node(const Aster__Lease__V1__Node *message, struct aster_scratch *scratch,
                              struct aster_node_record *record, struct aster_error *error)
{
    *record = (struct aster_node_record){.id = aster_from_binary(message->id),
                                         .name = aster_from_binary(message->name),
                                         .origin = (enum aster_node_origin)message->origin,
                                         .links = message->links};
    if ((int)message->origin < ASTER_NODE_CONFIGURED) {
        return broken(error, "a node has no origin");
    }
    if ((int)message->origin > ASTER_NODE_REMOVED) {
        return aster_error_set(error, ASTER_ERR_VERSION, "the origin of a node is %d: update the client",
                               (int)message->origin);
    }
    aster_status status = aster_list_from_binary(message->n_roles, message->roles, scratch, &record->roles, error);
    if (status == ASTER_OK) {
        status = aster_list_from_binary(message->n_resources, message->resources, scratch, &record->resources, error);
    }
    return status == ASTER_OK ? aster_node_record_check(record, error) : status;
}

static aster_status read_rule(const Aster__Lease__V1__Rule *message, struct aster_rule *rule, struct aster_error *error)
{
    *rule = (struct aster_rule){(int)message->verb, aster_from_binary(message->role), message->by_operator != 0};
    if (aster_verb_name(rule->verb) == NULL) {
        return aster_error_set(error, ASTER_ERR_VERSION, "a rule is about verb %d: update the client", rule->verb);
    }
    return rule->role.size == 0 ? ASTER_OK : aster_role_check(rule->role, error);
}

aster_status aster_nodes_read(const Aster__Lease__V1__Nodes *message, struct aster_scratch *scratch,
                              struct aster_answer *answer, struct aster_error *error)
{
    if (message->n_nodes > ASTER_WIRE_NODES_MAX || message->n_rules > ASTER_VERBS) {
        return broken(error, "too many nodes or rules in one reply");
    }
    answer->kind = ASTER_ANSWER_NODES;
    answer->nodes.records = aster_scratch_take(scratch, message->n_nodes * sizeof *answer->nodes.records);
    answer->nodes.rules = aster_scratch_take(scratch, message->n_rules * sizeof *answer->nodes.rules);
    if (answer->nodes.records == NULL || answer->nodes.rules == NULL) {
        return aster_scratch_full(error);
    }
    answer->nodes.count = message->n_nodes;
    answer->nodes.rule_count = message->n_rules;
    answer->nodes.more = message->more != 0;
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < message->n_nodes; i++) {
        status = read_node(message->nodes[i], scratch, &answer->nodes.records[i], error);
    }
    for (size_t i = 0; status == ASTER_OK && i < message->n_rules; i++) {
        status = read_rule(message->rules[i], &answer->nodes.rules[i], error);
    }
    return status;
}

aster_status aster_changed_read(const Aster__Lease__V1__Changed *message, struct aster_scratch *scratch,
                                struct aster_answer *answer, struct aster_error *error)
{
    if ((message->node != NULL) == (message->rule != NULL)) {
        return broken(error, "a change is not of one node or one rule");
    }
    if (message->held_ns < 0) {
        return broken(error, "held_ns is negative");
    }
    answer->kind = ASTER_ANSWER_CHANGED;
    answer->changed.is_rule = message->rule != NULL;
    answer->changed.changed = message->changed != 0;
    answer->changed.links_ended = message->links_ended;
    answer->changed.revoked = message->revoked;
    answer->changed.held = message->held;
    answer->changed.held_ns = message->held_ns;
    return message->rule != NULL ? read_rule(message->rule, &answer->changed.rule, error)
                                 : read_node(message->node, scratch, &answer->changed.record, error);
}
