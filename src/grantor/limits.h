/* What one identity, and all of them together, may have of this server at a time. Loop's thread.
 *
 * Memory follows the number of operations: GRANTOR_OPERATION_BYTES each may be taken up, of one identity and of all.
 * What is not about a lease that is held stands back first: renewals have a quarter more, as far as all identities
 * together are concerned. */
#ifndef GRANTOR_LIMITS_H
#define GRANTOR_LIMITS_H

#include "grantor/peers.h"
#include "grantor/state.h"
#include "wire/request.h"

#define GRANTOR_OPERATION_BYTES 1024
#define GRANTOR_READS_MAX 64            /* of one identity; at the reader, which does one after the other */
#define GRANTOR_WATCHES_MAX 256         /* of one identity */
#define GRANTOR_READS_TOTAL_MAX 1024    /* of all */
#define GRANTOR_READ_BYTES_MAX 33554432 /* found by reads and not yet sent, of one identity */
#define GRANTOR_READ_BYTES_TOTAL_MAX 268435456
#define GRANTOR_HELD_BYTES_TOTAL_MAX 536870912 /* of replies that wait for room, of all identities */

/* One more session was counted: may it stay? If not, the log says so, once a second. */
bool grantor_limits_take_session(const struct grantor_state *state, struct grantor_peer *peer);

/* May this call be begun? If not, `error` is LIMIT and says which limit it is. */
bool grantor_limits_take_call(const struct grantor_state *state, const struct grantor_peer *peer,
                              const struct aster_call *call, struct aster_error *error);

/* The same for list, history and watch. */
bool grantor_limits_take_read(const struct grantor_state *state, const struct grantor_peer *peer, bool watch,
                              struct aster_error *error);

/* Is there room for more of what reads find? From any thread. */
bool grantor_limits_have_room_for_reads(const struct grantor_state *state, const struct grantor_peer *peer);

#endif
