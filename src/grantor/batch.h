/* Several renewals that came in one message and are answered in one. Loop's thread. */
#ifndef GRANTOR_BATCH_H
#define GRANTOR_BATCH_H

#include "grantor/state.h"

struct grantor_batch;

/* Start all of them; answers by itself, also when it fails. */
void grantor_batch_start(struct grantor_session *session, const struct aster_call *call);

/* The result of one; the last one sends the reply, unless the link is gone. */
void grantor_batch_answer(struct grantor_batch *batch, size_t slot, aster_status status,
                          const struct aster_decision *decision, const char *message);

/* Its link is gone. */
void grantor_batch_abandon(struct grantor_batch *batch);

#endif
