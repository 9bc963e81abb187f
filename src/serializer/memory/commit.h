/* The private door through which the memory serializer's decisions are made durable before anybody hears of them: what
 * a journal's writer needs of it (journal/writer.h).
 *
 * Every changed row makes a change, handed to the committer in the order of the decisions and answered once it is
 * durable. Whatever was decided by looking at a row whose change is not durable yet is held back the same way, behind
 * all that was handed over before it. Renewals make no change: unless somebody else's change of that row is under way,
 * they are answered at once.
 *
 * Locks: take() is called with one stripe's lock held; the functions below lock stripes themselves, so they are called
 * without a lock that take() needs. Only freeze() holds more than one stripe: all, in ascending order. */
#ifndef MEMORY_COMMIT_H
#define MEMORY_COMMIT_H

#include "aster/memory.h"
#include "aster/sys/serializer.h"
#include "engine/table.h"
#include "serializer/memory/links.h"

struct memory;
struct memory_stripe;

/* One link of the queue: a changed row, an event, an answer, or several of them. */
struct memory_change {
    struct memory_change *next; /* the committer's */
    bool tried;                 /* the committer's: it was part of the append that failed */
    /* The rest is the memory serializer's; read only. */
    bool on_top;             /* an event of what is not durable: it does not outlive an undo */
    bool waited;             /* a grant to who was first in line */
    struct memory_link link; /* of the stripe's changes, when a row changed */
    struct memory_stripe *stripe;
    struct aster_request *request; /* to be answered; NULL for an event alone */
    struct aster_reply reply;
    struct aster_table_image image; /* what the row was; kind NONE: no row changed */
    int64_t floor;                  /* REMOVED: what the row raises the floor to */
    struct aster_event event;       /* kind 0: none */
    char bytes[];                   /* of the event */
};

static inline bool memory_change_has_row(const struct memory_change *change)
{
    return change->image.kind != ASTER_IMAGE_NONE;
}

struct memory_committer {
    void *self;
    /* Take a change into the queue and give its event, if it has one, the next revision. `row` is what change->request
     * made of its resource (NULL: removed, or none changed), a view that lives during the call; with `same_value` its
     * value is that of the row before. Must not block. Errors: nothing was taken. */
    aster_status (*take)(void *self, struct memory_change *change, const struct aster_row *row, bool same_value,
                         struct aster_error *error);
    /* Block until all that was taken before this call is durable, or was undone. False: it takes too long. */
    bool (*settle)(void *self);
};

/* As aster_memory_open(), without a serializer around it. `committer` is copied. */
aster_status aster_memory_create(const struct aster_memory_options *options, const struct memory_committer *committer,
                                 struct memory **memory, struct aster_error *error);

/* Before the first request: put back what was durable. Held rows get a full ttl from now. Errors: ASTER_ERR_CORRUPT,
 * ASTER_ERR_NOMEM. */
aster_status aster_memory_load_row(struct memory *memory, struct aster_bytes resource, const struct aster_row *row,
                                   struct aster_error *error);
void aster_memory_load_floor(struct memory *memory, int64_t floor);
void aster_memory_load_event(struct memory *memory, const struct aster_event *event);

/* The change is durable: its row may be looked at, its event is in the history. Then answer(), which ends it. */
void aster_memory_durable(struct memory *memory, struct memory_change *change);
void aster_memory_answer(struct memory_change *change);

/* Taking back all that is not durable: freeze(), so that nothing is decided and nothing taken meanwhile; undo() every
 * change of the queue, newest first; one of redo() (ends it: its request is decided anew, before any that came later,
 * or first in line again) and refuse() for each that has a request, newest first; thaw(). Events alone stay with the
 * caller. refuse() comes after thaw(); it ends the change and answers `status` with what `error` says. */
void aster_memory_freeze(struct memory *memory);
void aster_memory_undo(struct memory *memory, struct memory_change *change);
/* One row is to be undone: lists that were shown it look again. Before settle() ends for it. */
void aster_memory_count_undone(struct memory *memory);
void aster_memory_redo(struct memory *memory, struct memory_change *change);
void aster_memory_thaw(struct memory *memory);
void aster_memory_refuse(struct memory_change *change, aster_status status, const struct aster_error *error);
void aster_memory_change_destroy(struct memory_change *change);

/* The vtable's functions, for a serializer that wraps it; `self` is the struct memory. */
void aster_memory_submit(void *self, struct aster_request *request);
void aster_memory_cancel(void *self, struct aster_request *request);
void aster_memory_close(void *self);
aster_status aster_memory_wait(void *self, int64_t timeout_ms);
void aster_memory_destroy(void *self);
aster_status aster_memory_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                               struct aster_error *error);
aster_status aster_memory_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                  void *user, struct aster_error *error);

#endif
