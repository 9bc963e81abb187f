#include "cli/grantor/admit.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"

#define LIST_TEXT_MAX 256

static const char *origin_name(enum aster_node_origin origin)
{
    static const char *const names[] = {"", "configuration", "operator", "removed"};
    return names[origin];
}

static json_t *json_list(const struct aster_bytes_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(array, aster_json_bytes(list->items[i]));
    }
    return array;
}

static json_t *json_node(const struct aster_node_record *record)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:i, s:s}", "id", aster_json_bytes(record->id), "name",
                     aster_json_bytes(record->name), "roles", json_list(&record->roles), "resources",
                     json_list(&record->resources), "connected", record->links > 0, "connections", (int)record->links,
                     "from", origin_name(record->origin));
}

static json_t *json_rule(const struct aster_rule *rule)
{
    return rule->role.size > 0 ? aster_json_bytes(rule->role) : json_null();
}

/* "a, b", cut to the buffer; `none` when it is empty. */
static const char *text_list(const struct aster_bytes_list *list, const char *none, char text[LIST_TEXT_MAX])
{
    char shown[ASTER_PRINTABLE_MAX];
    size_t used = 0;
    snprintf(text, LIST_TEXT_MAX, "%s", list->count == 0 ? none : "");
    for (size_t i = 0; i < list->count && used < LIST_TEXT_MAX; i++) {
        int length = snprintf(text + used, LIST_TEXT_MAX - used, "%s%s", i > 0 ? ", " : "",
                              aster_printable(list->items[i], shown));
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}

/* Whole, because people copy it; a name of the wire has no control characters. */
static const char *text_id(struct aster_bytes id, char text[ASTER_IDENTITY_MAX + 1])
{
    snprintf(text, ASTER_IDENTITY_MAX + 1, "%.*s", (int)id.size, (const char *)id.data);
    return text;
}

static bool add_row(struct aster_text_table *table, const struct aster_node_record *record)
{
    char id[ASTER_IDENTITY_MAX + 1];
    char name[ASTER_PRINTABLE_MAX];
    char roles[LIST_TEXT_MAX];
    char resources[LIST_TEXT_MAX];
    char links[16];
    bool removed = record->origin == ASTER_NODE_REMOVED;
    snprintf(links, sizeof links, "%" PRIu32, record->links);
    const char *const cells[] = {text_id(record->id, id),
                                 aster_printable(record->name, name),
                                 text_list(&record->roles, "-", roles),
                                 text_list(&record->resources, removed ? "-" : "all", resources),
                                 links,
                                 origin_name(record->origin)};
    return aster_text_table_add(table, sizeof cells / sizeof cells[0], cells) == ASTER_OK;
}

static void add_rule(struct aster_node_listing *listing, const struct aster_rule *rule)
{
    char shown[ASTER_PRINTABLE_MAX];
    size_t used = strlen(listing->text);
    if (listing->rules != NULL) {
        listing->failed |= json_object_set_new(listing->rules, aster_verb_name(rule->verb), json_rule(rule)) != 0;
    } else if (rule->role.size > 0) {
        snprintf(listing->text + used, sizeof listing->text - used, "%s%s needs %s", used > 0 ? ", " : "",
                 aster_verb_name(rule->verb), aster_printable(rule->role, shown));
    }
}

void aster_node_listing_add(struct aster_node_listing *listing, const struct aster_answer *answer)
{
    static const char *const heading[] = {"ID", "NAME", "ROLES", "RESOURCES", "CONNECTIONS", "FROM"};
    if (listing->nodes == NULL && listing->table.rows == 0) {
        listing->failed |=
            aster_text_table_add(&listing->table, sizeof heading / sizeof heading[0], heading) != ASTER_OK;
    }
    for (size_t i = 0; i < answer->nodes.count && !listing->failed; i++) {
        const struct aster_node_record *record = &answer->nodes.records[i];
        listing->failed |= listing->nodes != NULL ? json_array_append_new(listing->nodes, json_node(record)) != 0
                                                  : !add_row(&listing->table, record);
    }
    for (size_t i = 0; i < answer->nodes.rule_count; i++) {
        add_rule(listing, &answer->nodes.rules[i]);
    }
}

int aster_node_listing_print(const struct aster_cli *cli, struct aster_node_listing *listing)
{
    if (cli->json) {
        json_t *whole = json_pack("{s:O, s:O}", "nodes", listing->nodes, "requires", listing->rules);
        return aster_json_print(whole, JSON_INDENT(2), stdout);
    }
    aster_text_table_print(&listing->table, stdout);
    if (listing->text[0] != '\0') {
        printf("\n%s\n", listing->text);
    }
    return ASTER_EXIT_OK;
}

void aster_node_listing_fini(struct aster_node_listing *listing)
{
    aster_text_table_free(&listing->table);
    json_decref(listing->nodes);
    json_decref(listing->rules);
}

/* ---- a change ---- */

static int print_json(const struct aster_answer *answer)
{
    json_t *whole;
    if (answer->changed.is_rule) {
        whole = json_pack("{s:{s:o}, s:b}", "requires", aster_verb_name(answer->changed.rule.verb),
                          json_rule(&answer->changed.rule), "changed", answer->changed.changed);
    } else {
        whole = json_pack("{s:o, s:b, s:i, s:I, s:I, s:I}", "node", json_node(&answer->changed.record), "changed",
                          answer->changed.changed, "connections_ended", (int)answer->changed.links_ended, "revoked",
                          (json_int_t)answer->changed.revoked, "held", (json_int_t)answer->changed.held, "held_ms",
                          (json_int_t)(answer->changed.held_ns / 1000000));
    }
    return aster_json_print(whole, JSON_COMPACT, stdout);
}

static void print_rule(const struct aster_answer *answer)
{
    char shown[ASTER_PRINTABLE_MAX];
    const struct aster_rule *rule = &answer->changed.rule;
    printf("%s needs %s%s%s\n", aster_verb_name(rule->verb), rule->role.size > 0 ? "the role " : "no role",
           rule->role.size > 0 ? aster_printable(rule->role, shown) : "",
           answer->changed.changed ? "" : " (as before)");
}

static void print_node(const struct aster_answer *answer)
{
    char id[ASTER_IDENTITY_MAX + 1];
    char roles[LIST_TEXT_MAX];
    char resources[LIST_TEXT_MAX];
    const struct aster_node_record *record = &answer->changed.record;
    const char *as_before = answer->changed.changed ? "" : " (as before)";
    text_id(record->id, id);
    if (record->origin == ASTER_NODE_REMOVED) {
        printf("%s is not admitted%s\n", id, as_before);
    } else {
        printf("%s is admitted%s, roles: %s, resources: %s\n", id, as_before, text_list(&record->roles, "none", roles),
               text_list(&record->resources, "all", resources));
    }
}

/* What a withdrawal does not do is said, with what would. */
static void print_held(const struct aster_call *call, const struct aster_answer *answer)
{
    char seconds[ASTER_TEXT_MAX];
    bool withdrawn = call->kind == ASTER_CALL_NODE_REMOVE;
    bool dropped = call->kind == ASTER_CALL_NODE_ROLE && call->node.dropped.count > 0;
    if (answer->changed.held == 0 || !(withdrawn || dropped || call->node.replace)) {
        return;
    }
    printf("it still holds %" PRIu64 " leases, whose fences stay valid; ", answer->changed.held);
    if (withdrawn) {
        printf("they lapse by themselves within %s: add --revoke to take them away now\n",
               aster_text_seconds(answer->changed.held_ns, seconds));
    } else {
        puts("`aster revoke RESOURCE` takes one away");
    }
}

int aster_node_changed_print(const struct aster_cli *cli, const struct aster_call *call,
                             const struct aster_answer *answer)
{
    if (cli->json) {
        return print_json(answer);
    }
    if (answer->changed.is_rule) {
        print_rule(answer);
        return ASTER_EXIT_OK;
    }
    print_node(answer);
    if (call->kind == ASTER_CALL_NODE_REMOVE && call->node.revoke) {
        printf("%" PRIu64 " %s revoked\n", answer->changed.revoked,
               answer->changed.revoked == 1 ? "lease was" : "leases were");
    }
    if (answer->changed.links_ended > 0) {
        printf("%" PRIu32 " connections were ended\n", answer->changed.links_ended);
    }
    print_held(call, answer);
    return ASTER_EXIT_OK;
}
