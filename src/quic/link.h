/* What both transports share: the part of a link and of a transport that does not know what carries the bytes. */
#ifndef QUIC_LINK_H
#define QUIC_LINK_H

#include "quic/send_queue.h"
#include "quic/tls.h"
#include "quic/transport.h"
#include "wire/frame.h"

struct aster_link_ops {
    void (*wake)(struct aster_link *link); /* there is something to send, credit to give, or an end to announce */
    void (*evict)(struct aster_link *link, const struct aster_error *error); /* end a handshake now, OVERLOAD */
};

enum aster_link_state {
    ASTER_LINK_HANDSHAKING = 1,
    ASTER_LINK_OPEN = 2,
    ASTER_LINK_CLOSED = 3 /* closed() was called, or never will be */
};

struct aster_link {
    const struct aster_link_ops *ops;
    struct aster_transport *transport;
    void *user;
    enum aster_link_state state;
    bool accepted; /* by listening; false: we connected */
    bool throttled;
    bool starved;             /* a send was refused: say when there is room */
    bool stopping;            /* close() was called, or the peer broke a rule: ends with the round */
    enum aster_link_end end;  /* with `stopping` */
    const char *reason;       /* for the peer */
    struct aster_error error; /* with `stopping` */
    struct aster_tls_peer tls;
    struct aster_address remote;
    struct aster_send_queue out;
    struct aster_frame_reader in;
    size_t uncredited;       /* bytes handled while throttled */
    bool lingering;          /* counted as such */
    struct aster_link *next; /* in the transport's list */
    struct aster_link *previous;
    struct aster_link *younger; /* in the list of unfinished accepted handshakes */
    struct aster_link *older;
};

struct aster_transport_ops {
    const char *name;
    aster_status (*listen)(struct aster_transport *transport, const struct aster_address *local,
                           struct aster_address *bound, struct aster_error *error);
    aster_status (*connect)(struct aster_transport *transport, const struct aster_address *remote,
                            struct aster_bytes expected, void *user, struct aster_link **link,
                            struct aster_error *error);
    void (*destroy)(struct aster_transport *transport); /* on the loop's thread */
    void (*count)(const struct aster_transport *transport,
                  struct aster_transport_counts *counts); /* add its own; or NULL */
};

struct aster_transport {
    const struct aster_transport_ops *ops;
    struct aster_transport_options options;
    struct aster_transport_counts counts;
    struct aster_link *links;
    struct aster_link *oldest; /* of the unfinished accepted handshakes */
    struct aster_link *youngest;
    bool ending; /* being destroyed: no new links */
};

/* Check and copy the options. Errors: ASTER_ERR_INVALID. */
aster_status aster_transport_init(struct aster_transport *transport, const struct aster_transport_ops *ops,
                                  const struct aster_transport_options *options, struct aster_error *error);
void aster_transport_fini(struct aster_transport *transport);

/* Prepare a link and its TLS side, and list it. Errors: as aster_tls_peer_init(). */
aster_status aster_link_init(struct aster_link *link, struct aster_transport *transport,
                             const struct aster_link_ops *ops, bool accepted, const struct aster_address *remote,
                             struct aster_bytes expected, struct aster_error *error);
void aster_link_fini(struct aster_link *link);

/* The handshake has been confirmed: opened(). */
void aster_link_opened(struct aster_link *link);
/* Bytes of the stream arrived: frames come out. Returns the bytes for which credit may be given now. A broken frame
 * makes the link stop. */
size_t aster_link_received(struct aster_link *link, struct aster_bytes bytes);
/* The first `size` bytes of the send queue are no longer needed. */
void aster_link_sent(struct aster_link *link, size_t size);
/* Before one more handshake is accepted: where handshakes_max are unfinished, the oldest one makes way. An honest peer
 * needs milliseconds; who floods cannot keep others out for longer than that. */
void aster_link_make_room(struct aster_transport *transport);
/* End the oldest unfinished handshake, if there is one. */
void aster_link_evict_oldest(struct aster_transport *transport, const char *why);
/* Forget a link that was prepared and never began: neither opened, nor refused. */
void aster_link_withdraw(struct aster_link *link);
/* May this ended link be kept for a moment, so that its peer learns why? Not when handshakes_max others are. */
bool aster_link_linger(struct aster_link *link);
/* Mark the link to end with this round; the first reason stays. */
void aster_link_stop(struct aster_link *link, enum aster_link_end end, const char *reason,
                     const struct aster_error *error);
/* Call closed() (or refused(), for an accepted link that never opened), once. */
void aster_link_finish(struct aster_link *link, enum aster_link_end end, const struct aster_error *error);

#endif
