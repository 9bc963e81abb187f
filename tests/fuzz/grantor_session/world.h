/* A server without network or threads, and a few peers at links that are made of memory. */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "aster/bytes.h"
#include "wire/request.h"

#define WORLD_PEERS                                                                                                    \
    4 /* 0: operator; 1: everything else; 2: only names that begin with "b"; 3: 1 again, on another link */

/* `parking`: a store that leaves waiting to the server. */
void world_open(bool parking);
/* Every link goes; then nothing may be left of anything. Aborts otherwise. */
void world_close(void);

/* Whom a peer is; there are a few more names than peers. */
const char *world_identity(int at);
/* An operator's change counts from now on. */
void world_nodes_changed(void);
/* Bytes of a peer's stream; a link that ended is made anew before. */
void world_bytes(int peer, struct aster_bytes bytes);
/* One message, framed. */
void world_payload(int peer, struct aster_bytes payload);
void world_call(int peer, const struct aster_call *call);
/* The link is gone, without a good-bye. */
void world_cut(int peer);
/* The peer reads up to so many bytes of what was sent to it, and checks every answer. */
void world_take(int peer, size_t bytes);
void world_advance_ms(int64_t ms);
void world_end_round(void);
void world_read(void);
/* Other rules from now on. */
void world_reload(unsigned which);
/* No new requests any more. */
void world_drain(void);

#endif
