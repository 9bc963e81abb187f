/* What the parts of a running server share. Everything here belongs to the loop's thread, except where a member says
 * otherwise. */
#ifndef GRANTOR_STATE_H
#define GRANTOR_STATE_H

#include "aster/sys/serializer.h"
#include "grantor/admission.h"
#include "grantor/metrics.h"
#include "platform/loop.h"
#include "quic/transport.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

struct grantor_flight;
struct grantor_session;
struct grantor_reader;
struct grantor_peers;
struct grantor_parking;
struct grantor_page;
struct grantor_repeats;
struct grantor_registrar;
struct grantor_calls;

#define GRANTOR_DEADLINE_DEFAULT_MS 30000 /* of a request that names none */

struct grantor_state {
    struct aster_loop *loop;
    struct aster_serializer *serializer; /* any thread */
    struct grantor_admission *admission; /* any thread */
    struct grantor_reader *reader;       /* any thread; NULL before the first and after the last */
    struct grantor_reader *last_reader;  /* that is being destroyed */
    struct grantor_registrar *registrar; /* any thread */
    struct grantor_peers *peers;
    struct grantor_parking *parking; /* NULL when the serializer queues waiters by itself */
    struct grantor_repeats *repeats;
    struct grantor_calls *calls;
    struct grantor_session *sessions;
    struct grantor_flight *renewals; /* to be submitted at the end of this round, first */
    struct grantor_flight **renewals_end;
    struct grantor_flight *others; /* the same, after the renewals */
    struct grantor_flight **others_end;
    struct grantor_counters counters; /* any thread */
    struct aster_round round;
    size_t flights;                  /* not yet answered */
    size_t flight_bytes;             /* that they take up */
    size_t in_flight_max;            /* per identity */
    size_t in_flight_total_max;      /* of all of them */
    size_t connections_max;          /* per identity */
    struct aster_timer outbox_timer; /* looks at links whose replies wait */
    size_t held_bytes;               /* replies that wait for room, of all sessions */
    size_t reads;                    /* jobs at the reader */
    _Atomic(size_t) read_bytes;      /* replies to reads that wait for room, of all sessions; any thread */
    bool draining;
    bool ended;                /* nothing is submitted any more */
    struct aster_scratch in;   /* for decoding */
    struct aster_scratch out;  /* for encoding */
    unsigned char *frame;      /* one encoded reply */
    struct grantor_page *page; /* for news */
};

/* The lists and buffers of a state that is all zero; loop, serializer, admission, parking and reader are the server's
 * affair. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (no entropy); fini() is due then, too. */
aster_status grantor_state_init(struct grantor_state *state, struct aster_error *error);
void grantor_state_fini(struct grantor_state *state);

/* The end of a round of the loop: submit what it brought, and send what found no room before. */
void grantor_state_end_round(struct grantor_state *state);

#endif
