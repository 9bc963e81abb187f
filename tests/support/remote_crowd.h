/* One serializer in front of many nodes: whoever a scenario calls "w1" acts through a node of its own at the grantor,
 * and answers speak of "w1" again. So the conformance suite, which knows names only, meets authenticated identities. */
#ifndef SUPPORT_REMOTE_CROWD_H
#define SUPPORT_REMOTE_CROWD_H

#include "support/remote_grantor.h"

/* Nodes are made as names appear. The grantor outlives the serializer. */
aster_status remote_crowd_open(const struct remote_grantor *grantor, struct aster_serializer **serializer,
                               struct aster_error *error);

#endif
