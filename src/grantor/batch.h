/* Several renewals that came in one message and are answered in one. Unlike a flight, none of them waits, is parked,
 * cancelled or undone: so they share one piece of memory, one deadline and, where the serializer answers on a thread of
 * its own, one wake-up. Loop's thread, except for the answers. */
#ifndef GRANTOR_BATCH_H
#define GRANTOR_BATCH_H

#include "grantor/state.h"

struct grantor_batch;

/* Submit all of them at once, before whatever else the round brings, while they are in the processor's cache. Answers
 * by itself, also when it fails. */
void grantor_batch_start(struct grantor_session *session, const struct aster_call *call);

/* The link of the session is gone: its batches are decided, and nobody is told. */
void grantor_batches_abandon(struct grantor_session *session);

#endif
