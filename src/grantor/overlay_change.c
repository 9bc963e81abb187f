/* What an operator wants, as a new overlay. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/overlay.h"

#define SHORT_ID 40

const struct grantor_node *grantor_overlay_find(const struct grantor_overlay *overlay,
                                                const struct grantor_settings *settings, struct aster_bytes id)
{
    const struct grantor_node *node = grantor_nodes_find(&overlay->nodes, id);
    if (node != NULL) {
        return node->removed ? NULL : node;
    }
    return grantor_nodes_find(&settings->nodes, id);
}

const char *grantor_overlay_role(const struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                 int verb)
{
    if (overlay->requires[verb] != NULL) {
        return overlay->requires[verb][0] != '\0' ? overlay->requires[verb] : NULL;
    }
    return settings->requires[verb];
}

static aster_status no_memory(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the change: nothing was changed");
}

static bool same_set(const struct grantor_texts *a, const struct grantor_texts *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!grantor_texts_have(b, aster_text(a->items[i]))) {
            return false;
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!grantor_texts_have(a, aster_text(b->items[i]))) {
            return false;
        }
    }
    return true;
}

static bool same(const struct grantor_node *a, const struct grantor_node *b)
{
    return !b->removed && strcmp(a->name != NULL ? a->name : "", b->name != NULL ? b->name : "") == 0 &&
           same_set(&a->roles, &b->roles) && same_set(&a->resources, &b->resources);
}

static bool add_all(struct grantor_texts *texts, const struct aster_bytes_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!grantor_texts_have(texts, list->items[i]) && !grantor_texts_add(texts, list->items[i])) {
            return false;
        }
    }
    return true;
}

static bool make_node(const struct aster_node_record *record, struct grantor_node *node)
{
    struct grantor_node made = {.id = grantor_text_copy(record->id)};
    made.name = record->name.size > 0 ? grantor_text_copy(record->name) : NULL;
    if (made.id == NULL || (record->name.size > 0 && made.name == NULL) || !add_all(&made.roles, &record->roles) ||
        !add_all(&made.resources, &record->resources)) {
        grantor_node_free(&made);
        return false;
    }
    *node = made;
    return true;
}

/* Put the node over the configuration, where it needs to be: what is configured just so is left to the configuration.
 * Takes the node, also on failure. */
static aster_status put(struct grantor_overlay *overlay, const struct grantor_settings *settings,
                        struct grantor_node *node, struct aster_error *error)
{
    const struct grantor_node *configured = grantor_nodes_find(&settings->nodes, aster_text(node->id));
    bool needed = configured == NULL ? !node->removed : node->removed || !same(node, configured);
    if (!needed) {
        grantor_nodes_remove(&overlay->nodes, aster_text(node->id));
        grantor_node_free(node);
        return ASTER_OK;
    }
    if (!grantor_nodes_put(&overlay->nodes, node)) {
        grantor_node_free(node);
        return no_memory(error);
    }
    if (overlay->nodes.count > GRANTOR_OVERLAY_NODES_MAX) {
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "operators may keep %d nodes: write some into the configuration instead",
                               GRANTOR_OVERLAY_NODES_MAX);
    }
    return ASTER_OK;
}

static bool has_operator(const struct grantor_node *node)
{
    return !node->removed && grantor_texts_have(&node->roles, aster_text(ASTER_ROLE_OPERATOR));
}

/* Else only an editor could ever change anything again. */
static aster_status check_operators(const struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                    struct aster_error *error)
{
    for (size_t i = 0; i < overlay->nodes.count; i++) {
        if (has_operator(&overlay->nodes.items[i])) {
            return ASTER_OK;
        }
    }
    for (size_t i = 0; i < settings->nodes.count; i++) {
        const struct grantor_node *node = &settings->nodes.items[i];
        if (has_operator(node) && grantor_nodes_find(&overlay->nodes, aster_text(node->id)) == NULL) {
            return ASTER_OK;
        }
    }
    return aster_error_set(error, ASTER_ERR_REFUSED,
                           "it is the last node with the role operator: give the role to another one first");
}

static aster_status find_for_add(const struct aster_call *call, const struct grantor_settings *settings,
                                 const struct grantor_node *current, const struct grantor_node *wanted, bool *done,
                                 struct aster_error *error)
{
    const struct grantor_nodes alone = {(struct grantor_node *)(uintptr_t)wanted, 1};
    aster_status status = grantor_settings_fit(settings, &alone, "this server", error);
    *done = current != NULL && same(wanted, current);
    if (status == ASTER_OK && current != NULL && !*done && !call->node.replace) {
        status = aster_error_set(error, ASTER_ERR_REFUSED,
                                 "%.*s is admitted with another name, roles or prefixes: change its roles, or "
                                 "replace it (--replace)",
                                 SHORT_ID, current->id);
    }
    return status;
}

static aster_status change_add(struct grantor_overlay *overlay, const struct grantor_settings *settings,
                               const struct aster_call *call, bool *done, struct aster_error *error)
{
    struct grantor_node node;
    const struct grantor_node *current = grantor_overlay_find(overlay, settings, call->node.record.id);
    if (!make_node(&call->node.record, &node)) {
        return no_memory(error);
    }
    aster_status status = find_for_add(call, settings, current, &node, done, error);
    if (status != ASTER_OK || *done) {
        grantor_node_free(&node);
        return status;
    }
    return put(overlay, settings, &node, error);
}

static aster_status change_role(struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                const struct aster_call *call, bool *done, struct aster_error *error)
{
    const struct grantor_node *current = grantor_overlay_find(overlay, settings, call->node.record.id);
    struct grantor_node node;
    if (current == NULL) {
        return aster_error_set(error, ASTER_ERR_REFUSED, "no such node is admitted: add it first");
    }
    if (!grantor_node_copy(current, &node)) {
        return no_memory(error);
    }
    for (size_t i = 0; i < call->node.dropped.count; i++) {
        grantor_texts_drop(&node.roles, call->node.dropped.items[i]);
    }
    aster_status status = add_all(&node.roles, &call->node.record.roles) ? ASTER_OK : no_memory(error);
    if (status == ASTER_OK && node.roles.count > ASTER_NODE_ROLES_MAX) {
        status = aster_error_set(error, ASTER_ERR_LIMIT, "%zu roles of one node, the limit is %d: drop some",
                                 node.roles.count, ASTER_NODE_ROLES_MAX);
    }
    *done = same(&node, current);
    if (status != ASTER_OK || *done) {
        grantor_node_free(&node);
        return status;
    }
    return put(overlay, settings, &node, error);
}

static aster_status change_remove(struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                  const struct aster_call *call, bool *done, struct aster_error *error)
{
    struct grantor_node node = {.removed = true};
    *done = grantor_overlay_find(overlay, settings, call->node.record.id) == NULL;
    if (*done) {
        return ASTER_OK;
    }
    node.id = grantor_text_copy(call->node.record.id);
    return node.id != NULL ? put(overlay, settings, &node, error) : no_memory(error);
}

static bool same_role(const char *role, struct aster_bytes wanted)
{
    return aster_bytes_equal(aster_text(role), wanted);
}

static aster_status change_rule(struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                const struct aster_rule *rule, bool *done, struct aster_error *error)
{
    char **place = &overlay->requires[rule->verb];
    *done = same_role(grantor_overlay_role(overlay, settings, rule->verb), rule->role);
    if (*done) {
        return ASTER_OK;
    }
    free(*place);
    *place = NULL;
    if (!same_role(settings->requires[rule->verb], rule -> role)) {
        *place = grantor_text_copy(rule->role);
        return *place != NULL ? ASTER_OK : no_memory(error);
    }
    return ASTER_OK;
}

aster_status grantor_overlay_change(const struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                    const struct aster_call *call, struct grantor_overlay **changed,
                                    struct aster_error *error)
{
    struct grantor_overlay *made = grantor_overlay_copy(overlay);
    bool done = false;
    aster_status status;
    if (made == NULL) {
        return no_memory(error);
    }
    switch (call->kind) {
    case ASTER_CALL_NODE_ADD:
        status = change_add(made, settings, call, &done, error);
        break;
    case ASTER_CALL_NODE_ROLE:
        status = change_role(made, settings, call, &done, error);
        break;
    case ASTER_CALL_NODE_REMOVE:
        status = change_remove(made, settings, call, &done, error);
        break;
    default:
        status = change_rule(made, settings, &call->require, &done, error);
        break;
    }
    if (status == ASTER_OK && !done) {
        status = check_operators(made, settings, error);
    }
    if (status != ASTER_OK || done) {
        grantor_overlay_destroy(made);
        made = NULL;
    }
    if (status == ASTER_OK) {
        *changed = made;
    }
    return status;
}
