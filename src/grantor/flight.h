/* One operation on its way through the serializer. It owns copies of all its bytes, because the link that it came from
 * may be gone before the answer. Belongs to the loop's thread; only complete() runs elsewhere. */
#ifndef GRANTOR_FLIGHT_H
#define GRANTOR_FLIGHT_H

#include "grantor/state.h"

struct grantor_queue;

struct grantor_flight {
    struct aster_request request;
    struct aster_task task; /* brings the answer back to the loop */
    struct grantor_state *state;
    struct grantor_session *session; /* NULL once its link is gone, and for the server's own */
    struct grantor_peer *peer;       /* whose it is, for the counts, also when that is gone; NULL = the server's own */
    struct grantor_flight *previous; /* in the session's list */
    struct grantor_flight *next;
    struct grantor_flight *pending;       /* next in the round's list */
    struct grantor_flight *park_previous; /* in the queue of waiters */
    struct grantor_flight *park_next;
    struct grantor_queue *queue;
    struct grantor_flight *repeat_previous; /* in a bucket of repeats.h */
    struct grantor_flight *repeat_next;
    struct grantor_exemption exemption;                                                   /* of the server's own */
    void (*done)(void *user, aster_status status, const struct aster_decision *decision); /* the same; or NULL */
    void *done_user;
    struct grantor_flight *call_previous; /* in a bucket of calls.h */
    struct grantor_flight *call_next;
    int64_t give_up_ns; /* on the loop's clock: until then it may be parked; 0 = it does not wait */
    uint64_t id;
    size_t size; /* of this structure with its bytes */
    bool submitted;
    bool cancelled;
    bool own;            /* the server's: no session was ever behind it, and no role is asked for */
    aster_status status; /* the answer, when it came from another thread */
    struct aster_reply reply;
    char *message;
    char bytes[];
};

/* Make one for `operation` and add it to the round; NULL when out of memory. `wait_ms` is for acquire. Without a
 * session it is an operation of the server itself in the name of its caller, who need not be admitted. */
struct grantor_flight *grantor_flight_start(struct grantor_state *state, struct grantor_session *session, uint64_t id,
                                            const struct aster_operation *operation, uint32_t deadline_ms,
                                            uint32_t wait_ms);

/* Put it into the list of this round (again). */
void grantor_flight_launch(struct grantor_flight *flight);

/* Its client no longer wants it: what waits is answered CANCELLED, what is being decided is left alone. */
void grantor_flight_cancel(struct grantor_flight *flight);

/* Its link is gone: nobody will receive the answer. An acquire is cancelled, and undone if it is granted all the same.
 */
void grantor_flight_abandon(struct grantor_flight *flight);

/* The answer; frees the flight, unless it goes on waiting. */
void grantor_flight_answer(struct grantor_flight *flight, aster_status status, const struct aster_decision *decision,
                           const char *message);

/* The end of a round: submit what it brought, renewals first. */
void grantor_flights_submit(struct grantor_state *state);

/* The server is draining: whoever waits in the serializer is answered CLOSED. The serializer itself stays open for what
 * is being decided and for the reader's last look. */
void grantor_flights_dismiss(struct grantor_state *state);

#endif
