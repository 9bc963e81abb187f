/* One log line per ownership decision and per refused write. Any thread. */
#ifndef GRANTOR_AUDIT_LOG_H
#define GRANTOR_AUDIT_LOG_H

#include "aster/serializer.h"

void grantor_audit_log(const struct aster_event *event);

#endif
