/* The rules, as pure functions: row + operation + verdict about expiry -> row' + decision. No clock, no allocation,
 * no lock, no I/O. Call them inside your own transaction to write your own serializer or fenced resource (see
 * examples/own_serializer.c and aster/sys/serializer.h). Thread-safe: they touch only their arguments. */
#ifndef ASTER_TRANSITION_H
#define ASTER_TRANSITION_H

#include "aster/operation.h"

ASTER_BEGIN_DECLS

/* Memory of the last applied request, so that a repeat under the same id gets the same decision. */
struct aster_applied {
    unsigned char request_id[ASTER_REQUEST_ID_SIZE]; /* all zero = none */
    struct aster_bytes caller;
    enum aster_operation_kind kind;
    bool takeover;
    int64_t epoch; /* the decision's epoch */
};

/* The authoritative record of one resource. The views borrow memory of the row's owner. When the lease was granted
 * (granted_at) is not here: it is volatile, belongs to the serializer's clock and is never stored across a boot. */
struct aster_row {
    int64_t epoch; /* 0 = never acquired */
    bool held;
    struct aster_bytes holder; /* empty when free */
    int64_t ttl_ms;            /* of the current or last lease */
    int64_t lease_revision;    /* counts renewals of this row, never reset */
    struct aster_bytes value;
    int64_t value_revision;
    struct aster_bytes last_holder;
    int64_t last_epoch_held;
    struct aster_applied applied;
};

/* What a transition did. The views in `row` and `decision` borrow from the input row and the operation: store or copy
 * them before either goes away. */
struct aster_effect {
    struct aster_row row;           /* the row afterwards; equal to the input when !changed */
    bool changed;                   /* store `row` */
    bool rearm;                     /* granted_at := now */
    bool removed;                   /* forget: delete the row and raise the floor to its epoch */
    struct aster_decision decision; /* remaining_ns and since_unix_ms are 0: the serializer's clock fills them */
};

/* A row that does not exist behaves as a free row whose epoch is the table's floor (0 in a new table). */
ASTER_API struct aster_row aster_row_absent(int64_t floor);

/* Decide one operation. `expired` is the serializer's own judgement: held and now - granted_at >= ttl (it is ignored
 * when the operation carries EXPIRED_VERDICT). The order of refusals is that of the table in docs/rules.md.
 * Errors: ASTER_ERR_INVALID (operation out of shape, or its id was used for another kind of operation),
 * ASTER_ERR_COUNTER_EXHAUSTED (nothing changes). On failure *effect is untouched. */
ASTER_API aster_status aster_transition(const struct aster_row *row, bool expired,
                                        const struct aster_operation *operation, struct aster_effect *effect,
                                        struct aster_error *error);

/* A snapshot of a row, with remaining_ns and since_unix_ms 0. Its views borrow from the row and from `resource`. */
ASTER_API struct aster_snapshot aster_row_snapshot(struct aster_bytes resource, const struct aster_row *row);

/* The fence rule: may `writer` write `resource` under `fence` now? In this order: another resource, carried < current,
 * carried > current, not held, fence or writer not the holder. Expiry alone does not reject a write. */
ASTER_API struct aster_verdict aster_fence_verdict(const struct aster_row *row, struct aster_bytes resource,
                                                   const struct aster_fence *fence, struct aster_bytes writer);

/* The rule of a resource that is told of grants by its writers only, and keeps the fence of the last accepted write as
 * its high-water mark (epoch 0 = none yet): may `fence` follow `last`? Another resource, writer not the holder, carried
 * < last, or the last epoch under another holder are refused; a newer epoch is news. Compare and store in one step. */
ASTER_API struct aster_verdict aster_fence_follow(const struct aster_fence *last, const struct aster_fence *fence,
                                                  struct aster_bytes writer);

ASTER_END_DECLS

#endif
