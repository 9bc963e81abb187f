/* A decision in one line for people: what, who, since when, what to do next. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "aster/serializer.h"
#include "base/error.h"

struct line {
    char *text;
    size_t size;
    size_t used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line->text + line->used, line->size - line->used, format, args);
    va_end(args);
    if (length > 0) {
        size_t room = line->size - line->used - 1;
        line->used += (size_t)length < room ? (size_t)length : room;
    }
}

static void add_instant(struct line *line, int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    if (unix_ms > 0 && gmtime_r(&seconds, &utc) != NULL) {
        char shown[32];
        strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%SZ", &utc);
        add(line, ", since %s", shown);
    }
}

static void add_owner(struct line *line, const struct aster_snapshot *snapshot)
{
    char resource[ASTER_PRINTABLE_MAX];
    char holder[ASTER_PRINTABLE_MAX];
    aster_printable(snapshot->resource, resource);
    if (!snapshot->held) {
        add(line, "%s is free, epoch %" PRId64, resource, snapshot->epoch);
        return;
    }
    add(line, "%s is held by %s, epoch %" PRId64, resource, aster_printable(snapshot->holder, holder), snapshot->epoch);
    add_instant(line, snapshot->since_unix_ms);
    int64_t tenths = snapshot->remaining_ns / 100000000;
    add(line, ", remaining %" PRId64 ".%" PRId64 "s", tenths / 10, tenths % 10);
}

/* The epoch that was carried is not the row's. */
static const char *after_mismatch(const struct aster_decision *decision)
{
    if (decision->carried_epoch > decision->snapshot.epoch) {
        return "no lease ever had that epoch: check where it comes from";
    }
    switch (decision->kind) {
    case ASTER_OP_RELEASE:
        return "that lease is over: there is nothing left to release";
    case ASTER_OP_REVOKE:
        return "that lease is over: look at the current one before you revoke it";
    default:
        return "that lease is over: stop, acquire again and read anew";
    }
}

static const char *next_step(const struct aster_decision *decision)
{
    switch (decision->reason) {
    case ASTER_REASON_HELD_BY_OTHER:
        return decision->kind == ASTER_OP_FORGET ? "release or revoke it first"
                                                 : "wait until it is released or expires";
    case ASTER_REASON_EPOCH_MISMATCH:
    case ASTER_REASON_STALE_EPOCH:
        return after_mismatch(decision);
    case ASTER_REASON_EXPIRED:
    case ASTER_REASON_NOT_HELD:
        return "acquire again";
    case ASTER_REASON_NOT_HOLDER:
        return "only the holder itself may do this";
    case ASTER_REASON_REVISION_MISMATCH:
        return "the value changed: read it again";
    case ASTER_REASON_FUTURE_EPOCH:
        return "integrity alarm: the store lost epochs or the fence was made up";
    case ASTER_REASON_WRONG_RESOURCE:
        return "use the fence of this resource";
    case ASTER_REASON_NO_FENCE:
        return "declare the fence before the write";
    case ASTER_REASON_UNAUTHORIZED:
    case ASTER_REASON_NONE:
        break;
    }
    return NULL;
}

size_t aster_decision_describe(const struct aster_decision *decision, char *text, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct line line = {text, size, 0};
    text[0] = '\0';
    add(&line, "%s: ", decision->outcome == ASTER_GRANTED ? "GRANTED" : aster_reason_name(decision->reason));
    if (decision->reason == ASTER_REASON_UNAUTHORIZED) { /* nothing about the row was told */
        char resource[ASTER_PRINTABLE_MAX];
        add(&line, "this identity may not %s %s; ask the operator for the right", aster_operation_name(decision->kind),
            aster_printable(decision->snapshot.resource, resource));
        return line.used;
    }
    add_owner(&line, &decision->snapshot);
    bool carries = decision->reason == ASTER_REASON_EPOCH_MISMATCH || decision->reason == ASTER_REASON_STALE_EPOCH ||
                   decision->reason == ASTER_REASON_FUTURE_EPOCH;
    if (carries) {
        add(&line, ", carried epoch %" PRId64, decision->carried_epoch);
    }
    const char *next = decision->outcome == ASTER_GRANTED ? NULL : next_step(decision);
    if (next != NULL) {
        add(&line, "; %s", next);
    }
    return line.used;
}
