/* Nodes as they travel: who is admitted to a grantor, with which roles, and which role a verb needs. */
#ifndef WIRE_NODES_H
#define WIRE_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"
#include "aster/status.h"

#define ASTER_NODE_NAME_MAX 64 /* bytes */
#define ASTER_ROLE_MAX 64      /* bytes */
#define ASTER_NODE_ROLES_MAX 32
#define ASTER_NODE_RESOURCES_MAX 64
#define ASTER_ROLE_OPERATOR "operator" /* may change nodes and rules */

/* What may need a role: the numbers of aster_operation_kind, then the reads. */
enum aster_verb { ASTER_VERB_LIST = 9, ASTER_VERB_HISTORY = 10, ASTER_VERB_WATCH = 11 };
#define ASTER_VERBS 12

/* "acquire" ... "watch"; NULL for a number without a verb. */
const char *aster_verb_name(int verb);
/* The number of a name, or -1. */
int aster_verb_find(const char *name);

enum aster_node_origin {
    ASTER_NODE_CONFIGURED = 1, /* by the configuration file */
    ASTER_NODE_BY_OPERATOR = 2,
    ASTER_NODE_REMOVED = 3 /* by an operator */
};

/* An array of views; whose memory it is says whoever gives one. */
struct aster_bytes_list {
    struct aster_bytes *items;
    size_t count;
};

struct aster_node_record {
    struct aster_bytes id;
    struct aster_bytes name; /* may be empty */
    struct aster_bytes_list roles;
    struct aster_bytes_list resources; /* prefixes; none = every name */
    enum aster_node_origin origin;     /* of answers */
    uint32_t links;                    /* of answers */
};

struct aster_rule {
    int verb;
    struct aster_bytes role; /* empty = nothing is needed */
    bool by_operator;        /* of answers */
};

/* 64 lower-case hexadecimal digits: an identity of key mode. */
bool aster_node_id_is_key(struct aster_bytes id);

/* Errors of all: ASTER_ERR_INVALID with what is wrong and what to do. */
aster_status aster_node_id_check(struct aster_bytes id, struct aster_error *error);
aster_status aster_node_name_check(struct aster_bytes name, struct aster_error *error);
aster_status aster_role_check(struct aster_bytes role, struct aster_error *error);
aster_status aster_roles_check(const struct aster_bytes_list *roles, struct aster_error *error);
aster_status aster_prefixes_check(const struct aster_bytes_list *prefixes, struct aster_error *error);
aster_status aster_verb_check(int verb, struct aster_error *error);
/* Id, name, roles and resources. */
aster_status aster_node_record_check(const struct aster_node_record *record, struct aster_error *error);

#endif
