#include "grantor/audit_log.h"

#include "grantor/log.h"

static enum grantor_level level_of(const struct aster_event *event)
{
    if (event->reason == ASTER_REASON_FUTURE_EPOCH) {
        return GRANTOR_ERROR; /* somebody carries an epoch that was never granted here */
    }
    return event->kind == ASTER_EVENT_FENCE_REJECTED || event->kind == ASTER_EVENT_UNAUTHORIZED ? GRANTOR_WARNING
                                                                                                : GRANTOR_INFO;
}

void grantor_audit_log(const struct aster_event *event)
{
    struct grantor_line line;
    grantor_line_init(&line, level_of(event), aster_event_name(event->kind));
    grantor_line_bytes(&line, "resource", event->resource);
    grantor_line_number(&line, "epoch", event->epoch);
    if (event->actor.size > 0) {
        grantor_line_bytes(&line, "actor", event->actor);
    }
    if (event->previous.size > 0) {
        grantor_line_bytes(&line, "previous", event->previous);
    }
    if (event->reason != ASTER_REASON_NONE) {
        grantor_line_text(&line, "reason", aster_reason_name(event->reason));
    }
    if (event->kind == ASTER_EVENT_FENCE_REJECTED) {
        grantor_line_number(&line, "carried", event->carried_epoch);
    }
    grantor_line_number(&line, "revision", event->revision);
    grantor_line_end(&line);
}
