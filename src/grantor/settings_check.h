/* What a configuration must be: each value as it is read, so that the message has its line, then the whole. */
#ifndef GRANTOR_SETTINGS_CHECK_H
#define GRANTOR_SETTINGS_CHECK_H

#include <confuse.h>

#include "grantor/settings.h"

/* Have the values checked while the file is parsed. */
void grantor_settings_checks(cfg_t *cfg);

/* What no single line can tell. Errors: ASTER_ERR_INVALID. */
aster_status grantor_settings_whole(const struct grantor_settings *settings, const struct grantor_place *place,
                                    const char *path, struct aster_error *error);

#endif
