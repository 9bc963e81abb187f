/* Attackers: each fills the program that runs it, until it is killed. */
#ifndef SUPPORT_GRANTOR_FLOOD_H
#define SUPPORT_GRANTOR_FLOOD_H

#include <stdint.h>

/* Never returns while it can go on, and at most a minute; 1 when something is missing. `node` is the directory of an
 * admitted node, for those kinds that need one:
 *
 *   initials        first packets of QUIC handshakes that are never continued
 *   datagrams       random bytes
 *   half-open       TCP connections that say nothing, again and again
 *   half-open-once  the same, kept
 *   garbage         TCP connections that say nonsense
 *   oversized-*     frames whose length is beyond the limit (node; -quic, -tcp)
 *   slow-*          frames a byte at a time (node)
 *   requests-*      requests as fast as they can be sent (node)
 *   events          acquires and releases in turn, so that there is something to watch (node)
 *   deaf-watcher    watches of everything whose events are never read (node) */
int grantor_flood(const char *kind, uint16_t quic, uint16_t tcp, const char *node);

#endif
