/* Replies that find no room in their link's buffer wait here, and meanwhile the link takes no new requests: whoever
 * asks faster than it reads is slowed down, not cut off. What waits counts as in flight for its peer. Loop's thread. */
#ifndef GRANTOR_OUTBOX_H
#define GRANTOR_OUTBOX_H

#include "grantor/session.h"

#define GRANTOR_OUTBOX_MAX 67108864       /* bytes of replies that may wait, of one identity */
#define GRANTOR_OUTBOX_READS_MAX 16777216 /* from here on an inspect is told LIMIT instead of the row */

/* Before the first session, and after the last. Errors: ASTER_ERR_NOMEM. */
aster_status grantor_outbox_open(struct grantor_state *state, struct aster_error *error);
void grantor_outbox_close(struct grantor_state *state);

/* Send one frame, or keep a copy until there is room. A link whose peer acknowledges nothing for 30 s while replies
 * wait is ended. Errors: ASTER_ERR_LIMIT (GRANTOR_OUTBOX_MAX), ASTER_ERR_NOMEM, ASTER_ERR_CLOSED. */
aster_status grantor_outbox_send(struct grantor_session *session, struct aster_bytes frame, struct aster_error *error);

/* There is room again. */
void grantor_outbox_drained(struct grantor_session *session);

/* The link is gone. */
void grantor_outbox_forget(struct grantor_session *session);

#endif
