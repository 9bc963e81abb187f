/* Requests: what a client sends. Pure: decoding uses the caller's scratch, encoding writes to the caller's buffer. */
#ifndef WIRE_REQUEST_H
#define WIRE_REQUEST_H

#include "aster/operation.h"
#include "wire/nodes.h"
#include "wire/scratch.h"

#define ASTER_WIRE_VERSION 1    /* the minor version that this build speaks */
#define ASTER_WIRE_AGENT_MAX 64 /* bytes */
#define ASTER_WIRE_RENEW_MANY_MAX 1024
#define ASTER_WIRE_ROWS_MAX 1024

enum aster_call_kind {
    ASTER_CALL_HELLO = 1,
    ASTER_CALL_OPERATION = 2,
    ASTER_CALL_RENEW_MANY = 3,
    ASTER_CALL_LIST = 4,
    ASTER_CALL_HISTORY = 5,
    ASTER_CALL_WATCH = 6,
    ASTER_CALL_CANCEL = 7,
    ASTER_CALL_NODE_ADD = 8,
    ASTER_CALL_NODE_ROLE = 9,
    ASTER_CALL_NODE_REMOVE = 10,
    ASTER_CALL_NODE_LIST = 11,
    ASTER_CALL_REQUIRE = 12
};

/* One request. Only the members of `kind` count. Views: see the function. */
struct aster_call {
    uint64_t id;          /* 0 exactly for hello */
    uint32_t deadline_ms; /* relative; 0 = the server's default */
    enum aster_call_kind kind;
    union {
        struct {
            uint32_t version;
            struct aster_bytes agent;
        } hello;
        struct {
            struct aster_operation operation; /* not EXPIRE, not EXPIRED_VERDICT: those are the serializer's own */
            uint32_t wait_ms;                 /* acquire */
        } one;
        struct {
            struct aster_operation *operations; /* RENEW each */
            size_t count;                       /* 1..ASTER_WIRE_RENEW_MANY_MAX */
        } many;
        struct {
            struct aster_bytes prefix;
            struct aster_bytes after;
            uint32_t limit;
        } list;
        struct {
            struct aster_bytes resource; /* empty = all */
            int64_t after_revision;
            uint32_t limit; /* history */
        } events;           /* history and watch */
        uint64_t cancel_id;
        struct {
            struct aster_node_record record; /* NODE_ADD: whom; NODE_ROLE: its id and the roles to add; NODE_REMOVE: its
                                                id; NODE_LIST: the id after which the list begins, or empty */
            struct aster_bytes_list dropped; /* NODE_ROLE */
            bool replace;                    /* NODE_ADD */
            bool revoke;                     /* NODE_REMOVE */
        } node;
        struct aster_rule require;
    };
};

/* Encode `call` into `data`, and give the length of the payload. No operation's caller is sent: the server knows it
 * from the handshake. Errors: ASTER_ERR_INVALID (not a call that can be sent, or `size` too small), ASTER_ERR_LIMIT
 * (the scratch is too small). */
aster_status aster_call_encode(const struct aster_call *call, struct aster_scratch *scratch, void *data, size_t size,
                               size_t *length, struct aster_error *error);

/* Decode and check everything: `caller` is the authenticated identity of the connection and becomes the caller of
 * each operation. Views borrow from the scratch and from `caller`. *id is set as soon as it is known, also on failure
 * (0 = unknown), so that an error can be answered. Errors: ASTER_ERR_INVALID, ASTER_ERR_UNSUPPORTED (an operation that
 * this build does not know), ASTER_ERR_LIMIT (too much in one message). */
aster_status aster_call_decode(struct aster_bytes payload, struct aster_bytes caller, const struct aster_limits *limits,
                               struct aster_scratch *scratch, struct aster_call *call, uint64_t *id,
                               struct aster_error *error);

#endif
