/* One link and what its peer wants. Loop's thread. The session outlives its link while a read of it is on its way. */
#ifndef GRANTOR_SESSION_H
#define GRANTOR_SESSION_H

#include <stdatomic.h>

#include "grantor/flight.h"
#include "grantor/reader.h"

struct grantor_batch;
struct grantor_peer;
struct grantor_order;

/* A watch that goes on. */
struct grantor_watcher {
    struct grantor_watcher *next;
    uint64_t id;
    int64_t revision; /* sent up to here */
    bool lost;        /* events since then were dropped: say so as soon as there is room */
    size_t size;
    char resource[]; /* empty = every resource */
};

struct grantor_session {
    struct grantor_state *state;
    struct aster_link *link; /* NULL once it is gone */
    struct grantor_peer *peer;
    struct grantor_session *previous;
    struct grantor_session *next;
    struct grantor_flight *flights;
    struct grantor_batch *batches;
    size_t reads; /* jobs at the reader */
    struct grantor_watcher *watchers;
    size_t watcher_count;
    struct grantor_chunk *chunks; /* replies to reads that wait for room */
    struct grantor_chunk **chunks_end;
    size_t chunk_bytes;
    struct grantor_chunk *held; /* other replies that wait for room; see outbox.h */
    struct grantor_chunk **held_end;
    size_t held_bytes;
    size_t left;      /* unacknowledged when the outbox last looked */
    int64_t moved_ns; /* when that was seen to change */
    atomic_bool gone; /* the link is; for the reader's thread */
    bool greeted;
    bool failed; /* being closed: nothing more is sent or taken */
};

/* Life: by the transport's handler. */
void grantor_session_open(struct grantor_state *state, struct aster_link *link);
void grantor_session_frame(struct grantor_session *session, struct aster_bytes payload);
void grantor_session_close(struct grantor_session *session);

/* For the flights: keep them in the session's list and counted for its peer. */
void grantor_session_add(struct grantor_session *session, struct grantor_flight *flight);
void grantor_session_remove(struct grantor_session *session, struct grantor_flight *flight);

/* Send one reply, now or when there is room; false when the peer will not get it (the link is closed). */
bool grantor_session_send(struct grantor_session *session, const struct aster_answer *answer);
bool grantor_session_fail(struct grantor_session *session, uint64_t id, aster_status status, const char *message);
bool grantor_session_decided(struct grantor_session *session, uint64_t id, aster_status status,
                             const struct aster_decision *decision, const char *message);
/* End the link. `reason` is static text for the peer's log. */
void grantor_session_end(struct grantor_session *session, const char *reason);

/* Refused by role or prefix so often that the history shall not grow by it? Then the denial is in *decision, and the
 * serializer is not asked. */
bool grantor_session_refuses(struct grantor_session *session, const struct aster_operation *operation,
                             struct aster_decision *decision);

/* Answer that the role for it is missing, and log that, at most so often as refusals are audited. */
void grantor_session_deny(struct grantor_session *session, uint64_t id, const char *verb);

/* Whoever may not do it learns nothing about the row. */
void grantor_hide_unauthorized(struct aster_decision *decision);

/* session_nodes.c: what operators ask about nodes. */
void grantor_session_order(struct grantor_session *session, const struct aster_call *call);
void grantor_session_ordered(struct grantor_order *order); /* an order came back */
const char *grantor_order_name(enum aster_call_kind kind); /* "node-add", ... */

/* session_reads.c: list, history and watch. */
void grantor_session_ask(struct grantor_session *session, const struct aster_call *call);
void grantor_session_read(struct grantor_job *job); /* a job came back */
/* Something is on its way for the session, which lives until end_read(). False: it was answered that there is too much
 * of it already. */
bool grantor_session_begin_read(struct grantor_session *session, uint64_t id);
void grantor_session_end_read(struct grantor_session *session); /* may free the session */
bool grantor_session_unwatch(struct grantor_session *session, uint64_t id);
void grantor_session_forget_reads(struct grantor_session *session); /* the link is gone */
void grantor_session_recheck(struct grantor_session *session);      /* end the watches that it may no longer have */
void grantor_session_release(struct grantor_session *session);      /* freed, unless a job at the reader has it still */
void grantor_session_pump(struct grantor_session *session);         /* there may be room again */
void grantor_sessions_tell(struct grantor_state *state, const struct grantor_news *news);

#endif
