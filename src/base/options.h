/* Reading a caller's options struct, which may come from an older or a newer header. */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stddef.h>

#include "aster/status.h"

/* Copy what `given` (may be NULL: nothing) has over the defaults in `known`. Both begin with their size_t struct_size;
 * known's stays. `init` is the name of the macro with the defaults, for the message. Errors: ASTER_ERR_INVALID: the
 * size is none, which is what a struct set to zero says. */
aster_status aster_options_read(void *known, const void *given, const char *init, struct aster_error *error);

#endif
