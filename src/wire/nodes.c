#include "wire/nodes.h"

#include <string.h>

#include "aster/limits.h"
#include "base/error.h"

static const char *const verbs[ASTER_VERBS] = {NULL,  "acquire", "renew",   "release", "revoke",  NULL,
                                               "put", "forget",  "inspect", "list",    "history", "watch"};

const char *aster_verb_name(int verb)
{
    return verb >= 0 && verb < ASTER_VERBS ? verbs[verb] : NULL;
}

int aster_verb_find(const char *name)
{
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        if (verbs[verb] != NULL && strcmp(verbs[verb], name) == 0) {
            return verb;
        }
    }
    return -1;
}

aster_status aster_verb_check(int verb, struct aster_error *error)
{
    if (aster_verb_name(verb) == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "verb %d is unknown: name one of grantor.proto", verb);
    }
    return ASTER_OK;
}

bool aster_node_id_is_key(struct aster_bytes id)
{
    const char *text = id.data;
    for (size_t i = 0; i < id.size; i++) {
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f')) {
            return false;
        }
    }
    return id.size == 64;
}

aster_status aster_node_id_check(struct aster_bytes id, struct aster_error *error)
{
    static const char scheme[] = "spiffe://";
    bool spiffe = id.size >= sizeof scheme && memcmp(id.data, scheme, sizeof scheme - 1) == 0;
    if (!spiffe && !aster_node_id_is_key(id)) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "node \"%.80s\": an id is 64 lower-case hexadecimal digits (aster node id), or a "
                               "spiffe:// id in CA mode",
                               aster_printable(id, shown));
    }
    return aster_identity_check(id, "node", error);
}

static aster_status check_short(struct aster_bytes text, const char *what, size_t max, struct aster_error *error)
{
    if (text.size > max) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a %s is %zu bytes long, the limit is %zu: shorten it", what,
                               text.size, max);
    }
    return aster_identity_check(text, what, error);
}

aster_status aster_node_name_check(struct aster_bytes name, struct aster_error *error)
{
    return name.size == 0 ? ASTER_OK : check_short(name, "node's name", ASTER_NODE_NAME_MAX, error);
}

aster_status aster_role_check(struct aster_bytes role, struct aster_error *error)
{
    return check_short(role, "role", ASTER_ROLE_MAX, error);
}

aster_status aster_roles_check(const struct aster_bytes_list *roles, struct aster_error *error)
{
    if (roles->count > ASTER_NODE_ROLES_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%zu roles of one node, the limit is %d: merge some",
                               roles->count, ASTER_NODE_ROLES_MAX);
    }
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < roles->count; i++) {
        status = aster_role_check(roles->items[i], error);
    }
    return status;
}

aster_status aster_prefixes_check(const struct aster_bytes_list *prefixes, struct aster_error *error)
{
    if (prefixes->count > ASTER_NODE_RESOURCES_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%zu prefixes of one node, the limit is %d: use a shorter one for several",
                               prefixes->count, ASTER_NODE_RESOURCES_MAX);
    }
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < prefixes->count; i++) {
        status = aster_resource_check(prefixes->items[i], error);
    }
    return status;
}

aster_status aster_node_record_check(const struct aster_node_record *record, struct aster_error *error)
{
    aster_status status = aster_node_id_check(record->id, error);
    if (status == ASTER_OK) {
        status = aster_node_name_check(record->name, error);
    }
    if (status == ASTER_OK) {
        status = aster_roles_check(&record->roles, error);
    }
    return status == ASTER_OK ? aster_prefixes_check(&record->resources, error) : status;
}
