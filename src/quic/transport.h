/* The seam between those who speak frames and what carries them. Two transports stand behind it: QUIC, and TLS 1.3 over
 * TCP for networks that drop UDP; both use the same certificates and the same frames.
 *
 * Everything here runs on the loop's thread (platform/loop.h), except where it says otherwise. Nothing blocks. */
#ifndef QUIC_TRANSPORT_H
#define QUIC_TRANSPORT_H

#include "platform/address.h"
#include "platform/loop.h"
#include "quic/credentials.h"

struct aster_transport; /* one side: listens, or connects, or both */
struct aster_link;      /* one connection to an authenticated peer */

/* Why a link ended. */
enum aster_link_end {
    ASTER_LINK_END_LOCAL = 1,   /* this side closed it */
    ASTER_LINK_END_PEER = 2,    /* the peer closed it in good order */
    ASTER_LINK_END_REFUSED = 3, /* an identity was not admitted in the handshake, by either side: retrying is useless */
    ASTER_LINK_END_UNREACHABLE = 4, /* nobody answers, or no longer */
    ASTER_LINK_END_FORGOTTEN = 5,   /* the peer was restarted and does not know the link */
    ASTER_LINK_END_PROTOCOL = 6,    /* a rule was broken: a frame too large, no common protocol, ... */
    ASTER_LINK_END_OVERLOAD = 7     /* the server has no room now */
};

/* Upper-case name, for example "UNREACHABLE". Never NULL. Thread-safe. */
const char *aster_link_end_name(enum aster_link_end end);

struct aster_link_handler {
    /* Both sides have judged each other; aster_link_identity() is final and never changes. Frames may be sent. */
    void (*opened)(struct aster_link *link, void *user);
    /* One frame. The payload lives during the call. May send, throttle and close. */
    void (*frame)(struct aster_link *link, struct aster_bytes payload, void *user);
    /* After a send was refused with ASTER_ERR_LIMIT: there is room again. Optional. */
    void (*drained)(struct aster_link *link, void *user);
    /* The last call about this link, exactly once for each link that connect() returned or that was opened; afterwards
     * it is gone. Must not send. */
    void (*closed)(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user);
};

struct aster_transport_options {
    size_t struct_size;
    struct aster_loop *loop;               /* outlives the transport */
    struct aster_credentials *credentials; /* the transport takes its own reference */
    /* Is this peer admitted? Asked inside the handshake, of servers about clients and of clients about servers. */
    bool (*admit)(struct aster_bytes identity, void *user);
    /* A peer failed in the handshake; identity is empty when none could be read. For audit; optional; not rate-limited.
     */
    void (*refused)(const struct aster_address *remote, struct aster_bytes identity, const struct aster_error *error,
                    void *user);
    const struct aster_link_handler *handler;
    void *user;             /* of admit, refused, and of the links that were accepted */
    size_t frame_max;       /* bytes of a payload that may arrive; 0 = ASTER_FRAME_PAYLOAD_MAX */
    size_t send_buffer_max; /* bytes that one link may have unacknowledged, at least two largest frames */
    size_t receive_window;  /* bytes that a peer may send ahead of what was handled */
    size_t connections_max; /* accepted ones; more are told OVERLOAD */
    size_t handshakes_max;  /* unfinished accepted ones; for one more the oldest is told OVERLOAD and ended */
    size_t retry_above;     /* QUIC: unfinished handshakes from which on addresses must be proved; 0 = always */
    int64_t handshake_timeout_ms;
    int64_t idle_timeout_ms; /* silence after which a peer is taken for gone; the smaller of both sides counts */
    int64_t keep_alive_ms;   /* the connecting side breaks the silence so often */
    unsigned char
        secret[ASTER_ENDPOINT_SECRET_SIZE]; /* QUIC: aster_node_secret(); all zero = random, lost on restart */
};

#define ASTER_TRANSPORT_OPTIONS_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(struct aster_transport_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 524288, 262144, 10000, 1024,    \
            256, 5000, 15000, 5000,                                                                                    \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* From any thread. The pointers in the options are kept, the structure is copied. Errors: ASTER_ERR_INVALID, NOMEM, IO.
 */
aster_status aster_quic_transport_create(const struct aster_transport_options *options,
                                         struct aster_transport **transport, struct aster_error *error);
aster_status aster_tcp_transport_create(const struct aster_transport_options *options,
                                        struct aster_transport **transport, struct aster_error *error);

/* Tell every peer that it ends, call closed() for every link, free. From any thread; waits for the loop. NULL is legal.
 * Not from inside a handler. */
void aster_transport_destroy(struct aster_transport *transport);

/* Accept connections at `local`; with port 0 the system chooses one, see *bound (optional). More than once for several
 * addresses. From any thread. Errors: ASTER_ERR_IO. */
aster_status aster_transport_listen(struct aster_transport *transport, const struct aster_address *local,
                                    struct aster_address *bound, struct aster_error *error);

/* Start to connect. `expected` is the identity that the server must have (empty: whoever admit() accepts). The link's
 * handler is called with `user`, never from inside this call. Errors: ASTER_ERR_UNREACHABLE (no route), NOMEM, IO. */
aster_status aster_transport_connect(struct aster_transport *transport, const struct aster_address *remote,
                                     struct aster_bytes expected, void *user, struct aster_link **link,
                                     struct aster_error *error);

/* Handshakes from now on use these. What is established stays, unless the roots changed and no longer vouch for it:
 * those links end with END_REFUSED there. Returns how many. Takes its own reference. From any thread. */
size_t aster_transport_reload(struct aster_transport *transport, struct aster_credentials *credentials);

/* Close every link whose peer has this identity, with END_REFUSED there. Returns how many. */
size_t aster_transport_expel(struct aster_transport *transport, struct aster_bytes identity);

/* "quic" or "tcp". Static. */
const char *aster_transport_name(const struct aster_transport *transport);

struct aster_transport_counts {
    size_t connections;      /* accepted and established, now */
    size_t handshakes;       /* accepted and unfinished, now */
    size_t lingering;        /* ended, and kept for a moment so that the peer learns why: at most handshakes_max */
    uint64_t accepted;       /* handshakes completed as a server, since the start */
    uint64_t refused;        /* handshakes failed as a server */
    uint64_t retries;        /* QUIC: addresses asked to prove themselves */
    uint64_t ignored;        /* QUIC: datagrams that meant nothing */
    uint64_t resets;         /* QUIC: stateless resets sent */
    uint64_t datagrams_sent; /* QUIC */
    uint64_t send_calls;     /* QUIC: system calls for them */
};
struct aster_transport_counts aster_transport_counts(const struct aster_transport *transport);

/* Copy `payload` into the link's send buffer; it leaves at the end of this round of the loop. Errors: ASTER_ERR_LIMIT
 * (the buffer is full: wait for drained(), or close), ASTER_ERR_CLOSED, ASTER_ERR_INVALID (empty or too large), NOMEM.
 */
aster_status aster_link_send(struct aster_link *link, struct aster_bytes payload, struct aster_error *error);

/* While throttled the peer gets no new credit: at most receive_window bytes more arrive. */
void aster_link_throttle(struct aster_link *link, bool throttled);

/* Send what is buffered as far as the network takes it at once, tell the peer, and end. closed() follows with
 * END_LOCAL, never from inside this call. `reason` is static text for the peer's log. */
void aster_link_close(struct aster_link *link, const char *reason);
/* The same, and the peer sees END_OVERLOAD: it may try again later. */
void aster_link_turn_away(struct aster_link *link, const char *reason);

/* The authenticated peer; empty before opened(). Lives as long as the link. */
struct aster_bytes aster_link_identity(const struct aster_link *link);
/* The peer's address now: it may change during a QUIC connection. */
const struct aster_address *aster_link_remote(const struct aster_link *link);
/* Bytes in the send buffer, sent or not. */
size_t aster_link_unacknowledged(const struct aster_link *link);
void aster_link_set_user(struct aster_link *link, void *user);
void *aster_link_user(const struct aster_link *link);

#endif
