/* The serializer that asterd serves, and where its decisions are kept. */
#ifndef GRANTOR_STORE_H
#define GRANTOR_STORE_H

#include "grantor/settings.h"
#include "grantor/state.h"

/* Open what the settings say, over state->admission, into state->serializer. state->loop may come later, but before
 * the first request. Errors: ASTER_ERR_INVALID and those of the store or journal. */
aster_status grantor_store_open(const struct grantor_settings *settings, struct grantor_state *state,
                                struct aster_error *error);

#endif
