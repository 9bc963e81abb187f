/* What operators ask about nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/peers.h"
#include "grantor/registrar.h"
#include "grantor/session.h"

#define PAGE_BYTES 98304 /* of names in one reply; what surrounds them has the rest of the frame */
#define FIELD_BYTES 8    /* what surrounds one field at most */

const char *grantor_order_name(enum aster_call_kind kind)
{
    switch (kind) {
    case ASTER_CALL_NODE_ADD:
        return "node-add";
    case ASTER_CALL_NODE_ROLE:
        return "node-role";
    case ASTER_CALL_NODE_REMOVE:
        return "node-remove";
    case ASTER_CALL_NODE_LIST:
        return "node-list";
    default:
        return "require";
    }
}

/* ---- show ---- */

static bool view(const struct grantor_texts *texts, struct aster_scratch *scratch, struct aster_bytes_list *list)
{
    list->items = aster_scratch_take(scratch, texts->count * sizeof list->items[0]);
    list->count = texts->count;
    for (size_t i = 0; list->items != NULL && i < texts->count; i++) {
        list->items[i] = aster_text(texts->items[i]);
    }
    return list->items != NULL;
}

/* The record borrows from the node. */
static bool describe(struct grantor_state *state, const struct grantor_node *node, enum aster_node_origin origin,
                     struct aster_node_record *record)
{
    *record = (struct aster_node_record){.id = aster_text(node->id), .name = aster_text(node->name), .origin = origin};
    record->links = (uint32_t)grantor_peers_links(state->peers, record->id);
    return view(&node->roles, &state->in, &record->roles) && view(&node->resources, &state->in, &record->resources);
}

static size_t size_of(const struct aster_node_record *record)
{
    size_t size = record->id.size + record->name.size + 4 * FIELD_BYTES;
    for (size_t i = 0; i < record->roles.count; i++) {
        size += record->roles.items[i].size + FIELD_BYTES;
    }
    for (size_t i = 0; i < record->resources.count; i++) {
        size += record->resources.items[i].size + FIELD_BYTES;
    }
    return size;
}

static void add_rules(const struct grantor_admission *admission, struct aster_rule rules[ASTER_VERBS], size_t *count)
{
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        if (aster_verb_name(verb) != NULL) {
            rules[(*count)++] = grantor_frozen_rule(admission, verb);
        }
    }
}

static bool fill_page(struct grantor_state *state, struct aster_bytes after, struct aster_answer *answer)
{
    enum aster_node_origin origin;
    size_t used = 0;
    answer->nodes.records = aster_scratch_take(&state->in, ASTER_WIRE_NODES_MAX * sizeof answer->nodes.records[0]);
    if (answer->nodes.records == NULL) {
        return false;
    }
    const struct grantor_node *node = grantor_frozen_after(state->admission, after, &origin);
    for (; node != NULL; node = grantor_frozen_after(state->admission, aster_text(node->id), &origin)) {
        struct aster_node_record *record = &answer->nodes.records[answer->nodes.count];
        answer->nodes.more = answer->nodes.count == ASTER_WIRE_NODES_MAX;
        if (answer->nodes.more || !describe(state, node, origin, record)) {
            return answer->nodes.count > 0;
        }
        used += size_of(record);
        answer->nodes.more = used > PAGE_BYTES;
        if (answer->nodes.more) {
            return true;
        }
        answer->nodes.count++;
    }
    return true;
}

static void list(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_state *state = session->state;
    struct aster_rule rules[ASTER_VERBS];
    struct aster_answer answer = {.id = call->id, .kind = ASTER_ANSWER_NODES};
    answer.nodes.rules = rules;
    grantor_admission_freeze(state->admission);
    if (call->node.record.id.size == 0) {
        add_rules(state->admission, rules, &answer.nodes.rule_count);
    }
    if (fill_page(state, call->node.record.id, &answer)) {
        grantor_session_send(session, &answer);
    } else {
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no room for the list");
    }
    grantor_admission_thaw(state->admission);
}

/* ---- order ---- */

static struct aster_bytes keep(struct aster_bytes bytes, char **to)
{
    struct aster_bytes kept = {*to, bytes.size};
    if (bytes.size > 0) {
        memcpy(*to, bytes.data, bytes.size);
        *to += bytes.size;
    }
    return kept;
}

/* The request is kept as it travels, so that the registrar can take it apart with memory of its own. */
static struct grantor_order *order_create(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_state *state = session->state;
    struct aster_bytes actor = aster_link_identity(session->link);
    struct aster_bytes node = call->kind != ASTER_CALL_REQUIRE ? call->node.record.id : (struct aster_bytes){NULL, 0};
    size_t size = 0;
    state->out.used = 0;
    if (aster_call_encode(call, &state->out, state->frame, ASTER_FRAME_PAYLOAD_MAX, &size, NULL) != ASTER_OK) {
        return NULL;
    }
    struct grantor_order *order = calloc(1, sizeof *order + actor.size + node.size + size);
    if (order == NULL) {
        return NULL;
    }
    char *to = order->bytes;
    order->actor = keep(actor, &to);
    order->node = keep(node, &to);
    order->request = keep((struct aster_bytes){state->frame, size}, &to);
    order->state = state;
    order->session = session;
    order->id = call->id;
    order->kind = call->kind;
    order->verb = call->kind == ASTER_CALL_REQUIRE ? call->require.verb : 0;
    return order;
}

void grantor_session_order(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_state *state = session->state;
    if (!grantor_admission_is_operator(state->admission, aster_link_identity(session->link))) {
        grantor_session_deny(session, call->id, grantor_order_name(call->kind));
        return;
    }
    if (call->kind == ASTER_CALL_NODE_LIST) {
        list(session, call);
        return;
    }
    if (!grantor_session_begin_read(session, call->id)) { /* answered */
        return;
    }
    struct grantor_order *order = order_create(session, call);
    if (order == NULL) {
        grantor_session_end_read(session);
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no memory for the order");
        return;
    }
    grantor_registrar_submit(state->registrar, order);
}

static void answer_order(struct grantor_session *session, const struct grantor_order *order)
{
    struct grantor_state *state = session->state;
    struct aster_answer answer = {.id = order->id, .kind = ASTER_ANSWER_CHANGED};
    enum aster_node_origin origin;
    bool described = true;
    answer.changed.is_rule = order->kind == ASTER_CALL_REQUIRE;
    answer.changed.changed = order->changed;
    answer.changed.links_ended = order->links_ended;
    answer.changed.revoked = order->revoked;
    answer.changed.held = order->held;
    answer.changed.held_ns = order->held_ns;
    state->in.used = 0; /* no message is being taken apart now */
    grantor_admission_freeze(state->admission);
    if (answer.changed.is_rule) {
        answer.changed.rule = grantor_frozen_rule(state->admission, order->verb);
    } else {
        const struct grantor_node *node = grantor_frozen_node(state->admission, order->node, &origin);
        answer.changed.record = (struct aster_node_record){.id = order->node, .origin = ASTER_NODE_REMOVED};
        described = node == NULL || describe(state, node, origin, &answer.changed.record);
    }
    if (described) {
        grantor_session_send(session, &answer);
    } else {
        grantor_session_fail(session, order->id, ASTER_ERR_NOMEM, "it is done, but there is no room for the answer");
    }
    grantor_admission_thaw(state->admission);
}

void grantor_session_ordered(struct grantor_order *order)
{
    struct grantor_session *session = order->session;
    if (!session->failed && order->status != ASTER_OK) {
        grantor_session_fail(session, order->id, order->status, order->error.message);
    } else if (!session->failed) {
        answer_order(session, order);
    }
    grantor_session_end_read(session);
    free(order);
}
