/* The identities that are connected, each once: what one of them may use up is counted over all its connections. */
#ifndef GRANTOR_PEERS_H
#define GRANTOR_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/bytes.h"
#include "aster/status.h"

struct grantor_peers;

struct grantor_peer {
    struct grantor_peer *next;
    size_t sessions;
    size_t
        in_flight; /* operations that are not answered, also of links that are gone, and replies that wait for room */
    size_t bytes;  /* that those operations take up */
    size_t held_bytes; /* of replies that wait for room */
    size_t reads;      /* jobs at the reader, also of links that are gone */
    size_t watches;
    _Atomic(size_t) read_bytes; /* of what reads and watches found that has not been sent; any thread */
    int64_t complained_ns;      /* when the log last said that it has too many connections */
    int64_t refilled_ns;        /* when `tokens` was last filled up */
    unsigned tokens;            /* refusals that may still be written to the history */
    size_t size;
    char identity[];
};

/* Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (no entropy). */
aster_status grantor_peers_create(struct grantor_peers **peers, struct aster_error *error);
void grantor_peers_destroy(struct grantor_peers *peers); /* NULL is legal */

/* The peer with one more session; NULL when out of memory. */
struct grantor_peer *grantor_peers_join(struct grantor_peers *peers, struct aster_bytes identity);
/* One session less. Whoever counts something down calls settle() afterwards: a peer without sessions is freed with the
 * last operation and read that it began. */
void grantor_peers_leave(struct grantor_peers *peers, struct grantor_peer *peer);
void grantor_peers_settle(struct grantor_peers *peers, struct grantor_peer *peer);
/* How many sessions an identity has. */
size_t grantor_peers_links(struct grantor_peers *peers, struct aster_bytes identity);
/* May this refusal be audited? At most ten at once and one a second, so that nobody floods the history. */
bool grantor_peer_may_audit(struct grantor_peer *peer, int64_t now_ns);

#endif
