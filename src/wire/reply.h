/* Replies: what a grantor sends. Pure: decoding uses the caller's scratch, encoding writes to the caller's buffer. */
#ifndef WIRE_REPLY_H
#define WIRE_REPLY_H

#include "aster/serializer.h"
#include "wire/nodes.h"
#include "wire/scratch.h"

enum aster_answer_kind {
    ASTER_ANSWER_ACCEPTED = 1,
    ASTER_ANSWER_DECISION = 2,
    ASTER_ANSWER_ERROR = 3,
    ASTER_ANSWER_RENEWED_MANY = 4,
    ASTER_ANSWER_ROWS = 5,
    ASTER_ANSWER_EVENTS = 6,
    ASTER_ANSWER_NODES = 7,
    ASTER_ANSWER_CHANGED = 8
};

#define ASTER_WIRE_NODES_MAX 1024

/* A failure as it travels. */
struct aster_wire_error {
    aster_status status;        /* negative */
    struct aster_bytes message; /* one line, less than ASTER_ERROR_MESSAGE_MAX bytes */
};

/* The result of one renewal of a batch. */
struct aster_renewed {
    aster_status status;            /* OK: look at decision; else look at message */
    struct aster_decision decision; /* granted: kind, outcome, epoch, and the snapshot's epoch, lease_revision and
                                       remaining_ns only */
    struct aster_bytes message;
};

/* One reply. Only the members of `kind` count. Views: see the function. */
struct aster_answer {
    uint64_t id;
    enum aster_answer_kind kind;
    union {
        struct {
            uint32_t version;
            struct aster_bytes identity;
            struct aster_bytes agent;
            int64_t ttl_min_ms;
            int64_t ttl_max_ms;
            uint32_t value_max_bytes;
            uint64_t in_flight_max; /* 0 = not said */
        } accepted;
        struct aster_decision decision;
        struct aster_wire_error error;
        struct {
            struct aster_renewed *results;
            size_t count;
        } renewed;
        struct {
            struct aster_snapshot *rows; /* without values */
            size_t count;
            bool more;
        } rows;
        struct {
            struct aster_event *events;
            size_t count;
            bool more;
            int64_t revision;
            bool lost;
            bool cut; /* history: ask again after `revision` */
        } events;
        struct {
            struct aster_node_record *records;
            size_t count;
            bool more;
            struct aster_rule *rules;
            size_t rule_count;
        } nodes;
        struct {
            bool is_rule; /* look at `rule`, else at `record` */
            struct aster_node_record record;
            struct aster_rule rule;
            bool changed;
            uint32_t links_ended;
            uint64_t revoked;
            uint64_t held;
            int64_t held_ns;
        } changed;
    };
};

/* Encode `answer` into `data`, and give the length of the payload. The value is left out of a granted renewal.
 * Errors: ASTER_ERR_INVALID (not an answer that can be sent, or `size` too small), ASTER_ERR_LIMIT (the scratch is too
 * small). */
aster_status aster_answer_encode(const struct aster_answer *answer, struct aster_scratch *scratch, void *data,
                                 size_t size, size_t *length, struct aster_error *error);

/* Decode and check everything. Views borrow from the scratch. Errors: ASTER_ERR_INVALID (malformed or against the
 * rules), ASTER_ERR_VERSION (an enum value or a result that this build does not know), ASTER_ERR_LIMIT. */
aster_status aster_answer_decode(struct aster_bytes payload, struct aster_scratch *scratch, struct aster_answer *answer,
                                 struct aster_error *error);

#endif
