/* What an operator asks a grantor about its nodes; not part of the library's interface. */
#ifndef REMOTE_NODES_H
#define REMOTE_NODES_H

#include "aster/serializer.h"
#include "wire/reply.h"
#include "wire/request.h"

/* Send one call (NODE_ADD, NODE_ROLE, NODE_REMOVE, NODE_LIST, REQUIRE; its id is chosen here) and show the answer,
 * which lives during visit() only. Blocks, 30 s at most. A change is sent again when the connection is lost: it has no
 * second effect. Errors: ASTER_ERR_REFUSED; ASTER_ERR_INDETERMINATE (it may have been made: ask again);
 * ASTER_ERR_UNSUPPORTED (not a grantor's serializer, or an older grantor); as for every request. */
aster_status remote_nodes_ask(struct aster_serializer *serializer, const struct aster_call *call,
                              void (*visit)(const struct aster_answer *answer, void *user), void *user,
                              struct aster_error *error);

#endif
