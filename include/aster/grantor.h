/* The remote serializer (library aster-grantor): leases of a grantor, a server that many machines reach. The handle,
 * the blocking calls and everything else over a serializer work unchanged.
 *
 * One thread and one connection per serializer, made when the first request needs it: QUIC, and TLS 1.3 over TCP where
 * UDP is dropped. Both sides prove who they are in the handshake, and the grantor takes that identity, and nothing
 * else, for the caller of every operation.
 *
 * A lost connection costs nobody a lease: what was in flight is repeated under the same request id on the next
 * connection, for as long as its deadline allows. The answers then mean:
 *   ASTER_ERR_UNREACHABLE    never left this machine, or the grantor is going down: nothing was applied
 *   ASTER_ERR_TIMEOUT        the grantor had it and did not order it in time: nothing was applied
 *   ASTER_ERR_INDETERMINATE  was sent and never answered, or only its repetition was, with an error: it may or may not
 *                            have been applied; repeat it under the same id
 *
 * There is no fenced write here (ASTER_ERR_UNSUPPORTED): keep the data in the fenced value (aster_put()), or let the
 * resource check the fence. */
#ifndef ASTER_GRANTOR_H
#define ASTER_GRANTOR_H

#include "aster/serializer.h"
#include "aster/sys/clock.h"

ASTER_BEGIN_DECLS

#define ASTER_GRANTOR_ADDRESSES_MAX 16

/* What the connection goes through. */
enum aster_grantor_event {
    ASTER_GRANTOR_CONNECTED = 1,   /* over QUIC */
    ASTER_GRANTOR_FELL_BACK = 2,   /* connected over TCP, because QUIC was not answered: is UDP dropped? */
    ASTER_GRANTOR_LOST = 3,        /* it is made again when the next request needs it */
    ASTER_GRANTOR_UNREACHABLE = 4, /* every way failed; tried again after a pause while requests wait */
    ASTER_GRANTOR_NOT_UNDERSTOOD = 5
};

struct aster_grantor_options {
    size_t struct_size;
    /* Where: "[IDENTITY@]HOST:PORT", several of them with commas. All are tried in turn, so all must lead to the same
     * leases. IDENTITY is what the server must prove to be; addresses without one take `server`. */
    const char *addresses;
    /* Whom to expect there; NULL = whoever a configured root vouches for, which only CA mode allows. */
    const char *server;
    /* Who we are. Key mode: the directory of the node's files (`aster node new`). CA mode: node NULL, and PEM files;
     * the key must be readable by its owner only. The files are read again before every new connection, so that a
     * certificate that was renewed under the same identity is used; another identity in them is not taken. */
    const char *node;
    const char *key;
    const char *certificate;
    const char *roots;
    size_t queue_max;           /* unanswered requests; more are refused with ASTER_ERR_LIMIT */
    int64_t fallback_delay_ms;  /* how long one way (address, QUIC or TCP) is tried before the next joins in */
    int64_t connect_timeout_ms; /* how long one way is tried at all */
    int64_t idle_timeout_ms;    /* silence after which a connection is taken for dead and made again; keep it below the
                                   shortest ttl, or a lease is lost with a dead connection */
    bool without_tcp;           /* never fall back */
    const struct aster_clock *clock; /* judges deadlines; NULL = the system clock */
    /* One line when a connection is made, lost or not to be had. Called on the serializer's thread; must not block or
     * call the serializer. NULL = nobody listens. */
    void (*log)(enum aster_grantor_event event, const char *line, void *user);
    void *log_user;
};

#define ASTER_GRANTOR_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct aster_grantor_options), NULL, NULL, NULL, NULL, NULL, NULL, 131072, 300, 5000, 6000, false,      \
            NULL, NULL, NULL                                                                                           \
    }

/* Load our key and certificate, resolve the addresses (which may block for the name service) and start the thread; no
 * packet is sent yet. Everything in the options is copied but the clock.
 * Errors: ASTER_ERR_INVALID (addresses, files, no expected server in key mode), ASTER_ERR_UNREACHABLE (no such host),
 * ASTER_ERR_IO, ASTER_ERR_NOMEM. */
ASTER_API aster_status aster_grantor_open(const struct aster_grantor_options *options,
                                          struct aster_serializer **serializer, struct aster_error *error);

/* Our own identity, which is the holder, candidate, writer and authority of every operation: another one is refused
 * with ASTER_ERR_INVALID before it is sent. Only inspect may leave the caller empty. Lives as long as the serializer;
 * empty for a serializer of another kind. Thread-safe. */
ASTER_API struct aster_bytes aster_grantor_identity(struct aster_serializer *serializer);

/* The identity that a certificate (PEM) stands for: its Ed25519 key, or with `spiffe` its SPIFFE id. For a service
 * behind something that ends TLS: that must have proved that the peer has the key, and for `spiffe` have verified the
 * chain; this function only reads. Errors: ASTER_ERR_INVALID, ASTER_ERR_NOMEM. Thread-safe. */
ASTER_API aster_status aster_grantor_certificate_identity(struct aster_bytes pem, bool spiffe,
                                                          char identity[ASTER_IDENTITY_MAX + 1],
                                                          struct aster_error *error);

ASTER_END_DECLS

#endif
